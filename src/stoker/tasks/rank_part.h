// SPDX-License-Identifier: Apache-2.0
// This rank's part of the batches that all ranks train on together, for sources that make whole global batches. Used by
// the tasks.
#pragma once

#include <memory>

#include "stoker/core/batch_source.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

// Rows rank * G / ranks ... (rank + 1) * G / ranks - 1 of each global batch of size G; the source itself for one rank.
[[nodiscard]] std::unique_ptr<core::BatchSource> rank_part(std::unique_ptr<core::BatchSource> source,
                                                           const BatchRequest& request);

// The same request for whole global batches: as for a single rank.
[[nodiscard]] BatchRequest whole_batches(BatchRequest request);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// Batches from a function that makes one sample: a dataset that a program defines in a few lines. Used by OwnTask.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stoker/base/counter_rng.h"
#include "stoker/core/batch_source.h"
#include "stoker/core/trainable.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

// The fields of sample `index` (0 ... samples-1) of a split, on the CPU; each field has one shape and dtype in all
// samples. `random` depends on (seed, split, epoch, sample), in evaluation not on the epoch. Called on one thread at a
// time; on a GPU ahead of the steps, on a thread of its own.
using SampleFunction =
    std::function<std::vector<core::NamedTensor>(Split split, std::int64_t index, CounterRng random)>;

// The samples of a split in batches, stacked, epoch after epoch: the training split in a new order in each epoch, the
// others always the same. DataError, at a batch, for a sample whose fields differ from those of its first.
[[nodiscard]] std::unique_ptr<core::BatchSource> sample_source(SampleFunction sample, Split split, std::int64_t samples,
                                                               const BatchRequest& request);

}  // namespace stoker::tasks

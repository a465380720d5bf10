// SPDX-License-Identifier: Apache-2.0
// The end of a run: its best checkpoint judged on the test split, and what there is to look at written into artifacts/.
// The part of Job that makes exhibits. One thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/core/events.h"
#include "stoker/job/setup.h"
#include "stoker/train/progress.h"

namespace stoker::job {

// Metrics of the best checkpoint on the test split, also as an Evaluated event; none without a test split. Tables, the
// confusion matrix and the task's exhibits of that split (or of the validation split where there is no test split) go
// to run/artifacts, each as an Artifact event. An artifact that cannot be written is a Finding and ends nothing.
[[nodiscard]] std::vector<core::MetricValue> judge_best(const std::filesystem::path& run, const Setup& setup,
                                                        const train::Progress& progress, core::EventEmitter& events);

}  // namespace stoker::job

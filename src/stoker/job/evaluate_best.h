// SPDX-License-Identifier: Apache-2.0
// The end of a run: evaluates its best checkpoint on the test split, and writes exhibits into artifacts/. The part of
// Job that writes exhibits. One thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/events.h"
#include "stoker/job/setup.h"
#include "stoker/train/progress.h"

namespace stoker::job {

// Writes to run/artifacts, each with an Artifact event. One that cannot be written is a Finding and ends nothing.
void write_exhibits(const std::vector<tasks::Exhibit>& exhibits, const std::filesystem::path& run, std::int64_t step,
                    core::EventEmitter& events);

// Metrics of the best checkpoint on the test split, also as an Evaluated event; no metrics without a test split.
// Tables, the confusion matrix and the task's exhibits of that split (of the validation split if there is no test
// split) are written as in write_exhibits(). Returns empty and writes nothing if give_up became true in between. With
// several ranks, metrics and tables are of all ranks' samples, the task's exhibits of rank 0's, which writes them.
// The checkpoint's weights replace those of setup.model: training is over.
[[nodiscard]] std::optional<std::vector<core::MetricValue>> evaluate_best(const std::filesystem::path& run,
                                                                          Setup& setup, const train::Progress& progress,
                                                                          core::EventEmitter& events,
                                                                          const std::function<bool()>& give_up);

}  // namespace stoker::job

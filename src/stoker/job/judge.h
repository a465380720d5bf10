// SPDX-License-Identifier: Apache-2.0
// The end of a run: its best checkpoint judged on the test split, and what there is to look at written into artifacts/.
// The part of Job that writes exhibits. One thread at a time.
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

// To run/artifacts, each as an Artifact event. One that cannot be written is a Finding and ends nothing.
void write_exhibits(const std::vector<tasks::Exhibit>& exhibits, const std::filesystem::path& run, std::int64_t step,
                    core::EventEmitter& events);

// Metrics of the best checkpoint on the test split, also as an Evaluated event; none without a test split. Tables, the
// confusion matrix and the task's exhibits of that split (or of the validation split where there is no test split) are
// written as write_exhibits() does. Nothing, and nothing written, where give_up came true in between.
[[nodiscard]] std::optional<std::vector<core::MetricValue>> judge_best(const std::filesystem::path& run,
                                                                       const Setup& setup,
                                                                       const train::Progress& progress,
                                                                       core::EventEmitter& events,
                                                                       const std::function<bool()>& give_up);

}  // namespace stoker::job

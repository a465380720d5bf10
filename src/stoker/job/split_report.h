// SPDX-License-Identifier: Apache-2.0
// What a trained model is worth: its metrics on a split, with the task's tables (per class), as a value, a table and
// JSON. Used by `stoker eval`; one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/core/bad_sample.h"
#include "stoker/job/loaded_model.h"
#include "stoker/tasks/task.h"

namespace stoker::job {

struct SplitReport {
  std::string split;
  std::int64_t samples = 0;          // judged
  std::vector<core::BadSample> bad;  // not judged, since they could not be had
  std::vector<core::MetricValue> metrics;
  std::vector<tasks::Table> tables;
};

// The data as the model sees it: labels go by class name, DataError for a class that it does not know.
[[nodiscard]] std::unique_ptr<tasks::ReadyTask> open_for(const LoadedModel& loaded, const std::filesystem::path& data,
                                                         const tasks::OpenOptions& options = {});

// Metrics of the model on a split ("train", "val", "test") of data opened for it, or on "all" of its samples as one
// set. DataError for a split without a sample, or where too many of them cannot be had (on_bad, bad_budget of the run).
[[nodiscard]] SplitReport evaluate_split(LoadedModel& loaded, const tasks::ReadyTask& task, const std::string& split,
                                         std::int64_t batch);

// evaluate_split() with what the run folder knows: its data where none is given, its validation cut, the test split if
// there is one and no other is asked for, else val. Other data than the run's (told by the number of training samples)
// is not cut: where it has neither test nor val of its own, all of it.
[[nodiscard]] SplitReport evaluate_run(const std::filesystem::path& run, const std::filesystem::path& data,
                                       const std::string& split, const std::string& checkpoint,
                                       const std::string& device);

[[nodiscard]] std::string report_table(const SplitReport& report);
[[nodiscard]] std::string report_json(const SplitReport& report);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// The metrics of a trained model on a split, with the task's tables (per class), as a value, a table and JSON. Used by
// `stoker eval`; one thread at a time.
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
  std::int64_t samples = 0;          // evaluated
  std::vector<core::BadSample> bad;  // not evaluated, since they are unreadable
  std::vector<core::MetricValue> metrics;
  std::vector<tasks::Table> tables;
};

// The data as the model sees it: labels are matched by class name; DataError for a class that the model does not know.
[[nodiscard]] std::unique_ptr<tasks::ReadyTask> open_for(const LoadedModel& loaded, const std::filesystem::path& data,
                                                         const tasks::OpenOptions& options = {});

// Metrics of the model on a split ("train", "val", "test") of data opened for it, or on "all" samples as one set. seed:
// of the run, for a program's own task that draws samples. DataError for a split without samples, or if too many of
// them are unreadable (on_bad, bad_budget of the run).
[[nodiscard]] SplitReport evaluate_split(LoadedModel& loaded, const tasks::ReadyTask& task, const std::string& split,
                                         std::int64_t batch, std::uint64_t seed = 0);

// evaluate_split() with values from the run folder: its seed, its data if none is given, its validation split, and the
// test split if there is one and no other is set, else val. Data with another number of training samples than the run's
// is not split: if it has neither test nor val, all of it is evaluated. At the end it restores torch's global settings.
[[nodiscard]] SplitReport evaluate_run(const std::filesystem::path& run, const std::filesystem::path& data,
                                       const std::string& split, const std::string& checkpoint,
                                       const std::string& device);

[[nodiscard]] std::string report_table(const SplitReport& report);
[[nodiscard]] std::string report_json(const SplitReport& report);

}  // namespace stoker::job

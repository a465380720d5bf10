// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/split_report.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/plain_nan.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/prefetcher.h"
#include "stoker/job/request.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/saved_plan.h"
#include "stoker/job/table_text.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/process_switches.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/recovery.h"
#include "stoker/train/resolve.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.eval";
constexpr std::size_t kBadShown = 10;  // lines

// The splits with a name; none of them is empty.
std::vector<tasks::Split> choose_splits(const tasks::ReadyTask& task, const std::string& name) {
  std::vector<tasks::Split> chosen;
  for (const tasks::Split each : tasks::kSplits) {
    if (task.size(each) > 0 && (name == "all" || name == tasks::split_name(each))) {
      chosen.push_back(each);
    }
  }
  if (chosen.empty()) {
    fail<DataError>(kWhere, "the data has no {} split; it has train {}, val {}, test {}", name,
                    task.size(tasks::Split::kTrain), task.size(tasks::Split::kVal), task.size(tasks::Split::kTest));
  }
  return chosen;
}

// A request for batches of an evaluation, without the listener for unreadable samples.
tasks::BatchRequest batch_request(const LoadedModel& loaded, std::int64_t batch, std::uint64_t seed) {
  tasks::BatchRequest request;
  request.batch = batch;
  request.seed = seed;
  request.threads =
      loaded.device().is_cuda() ? device::cpu_quota().cores : 0;  // on a CPU, loading and computing take turns
  request.cores = loaded.device().is_cuda() ? 0 : at::get_num_threads();
  request.pinned = loaded.device().is_cuda();
  request.once = true;
  return request;
}

// The run folder of a checkpoint at checkpoints/<name>.
fs::path run_of(const fs::path& checkpoint) {
  const fs::path clean = fs::absolute(checkpoint).lexically_normal();  // also of "best" and of "x/best/"
  return (clean.has_filename() ? clean : clean.parent_path()).parent_path().parent_path();
}

}  // namespace

SplitReport evaluate_split(LoadedModel& loaded, const tasks::ReadyTask& task, const std::string& split,
                           std::int64_t batch, std::uint64_t seed) {
  SplitReport report;
  report.split = split;
  tasks::BatchRequest request = batch_request(loaded, batch, seed);
  request.bad_samples = [&report](const core::BadSample& each) { report.bad.push_back(each); };
  const at::ScalarType dtype = precision::autocast_dtype(loaded.card.precision);
  std::vector<core::NamedTensor> totals;
  for (const tasks::Split each : choose_splits(task, split)) {
    report.samples += task.size(each);
    const auto source = device::prefetched(task.evaluation_batches(each, request), loaded.device(), request.once);
    train::Recovery recovery({.device = loaded.device(), .work = "the evaluation"});
    auto part = train::evaluate(*loaded.model, *source, dtype, {.split = &recovery});
    if (totals.empty()) {
      totals = std::move(part);
      continue;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      totals[i].tensor = totals[i].tensor.add(part[i].tensor);
    }
  }
  report.samples -= static_cast<std::int64_t>(report.bad.size());
  report.metrics = loaded.model->metrics(totals);
  report.tables = loaded.model->tables(totals);
  return report;
}

std::unique_ptr<tasks::ReadyTask> open_for(const LoadedModel& loaded, const fs::path& data,
                                           const tasks::OpenOptions& options) {
  const std::unique_ptr<tasks::OpenData> opened = tasks::task_kind(loaded.card.task).open(data, options);
  std::unique_ptr<tasks::ReadyTask> task;
  read_card(loaded.checkpoint, [&] { task = std::move(*opened).adopt(loaded.info); });
  return task;
}

SplitReport evaluate_run(const fs::path& run, const fs::path& data, const std::string& split,
                         const std::string& checkpoint, const std::string& device) {
  const precision::ProcessSwitches switches;  // the program that evaluates a run keeps its number of threads
  LoadedModel loaded = open_model(run, device, checkpoint);
  fs::path path = data;
  train::Plan cut = train::default_plan();
  if (const fs::path above = run_of(loaded.checkpoint); fs::exists(above / "plan.json")) {
    const RunFolder origin = RunFolder::open(above);
    cut = read_plan(origin.plan());
    path = data.empty() ? make_request(origin.config(), {}).data : path;
  }
  if (path.empty()) {
    fail<ConfigError>(kWhere, "{}: is not in a run folder, so its data is unknown; give DATA", printable(run.native()));
  }
  tasks::OpenOptions options;
  options.val = cut.val;
  options.seed = static_cast<std::uint64_t>(cut.seed);
  options.own = cut.own;
  options.model = cut.model;
  options.adopts = true;
  auto task = open_for(loaded, path, options);
  const bool others = !data.empty() && task->size(tasks::Split::kTrain) != loaded.card.train_samples;
  if (others) {
    options.whole = true;
    task = open_for(loaded, path, options);
  }
  const std::string chosen = !split.empty()                        ? split
                             : task->size(tasks::Split::kTest) > 0 ? "test"
                             : task->size(tasks::Split::kVal) > 0  ? "val"
                             : others                              ? "all"
                                                                   : "train";
  return evaluate_split(loaded, *task, chosen, 256, options.seed);
}

std::string report_table(const SplitReport& report) {
  std::string text = fmt::format("{} split{}, {}\n", report.split, report.split == "all" ? "s" : "",
                                 counted(report.samples, "sample"));
  for (std::size_t i = 0; i < std::min(report.bad.size(), kBadShown); ++i) {
    text += fmt::format("  not evaluated: {}: {}\n", printable(report.bad[i].name), printable(report.bad[i].reason));
  }
  if (report.bad.size() > kBadShown) {
    text += fmt::format("  and {} more that could not be read\n", report.bad.size() - kBadShown);
  }
  for (const core::MetricValue& metric : report.metrics) {
    text += fmt::format("  {:<13} {:.4f}\n", metric.name, plain_nan(metric.value));
  }
  for (const tasks::Table& table : report.tables) {
    text += "\n" + table_text(table);
  }
  return text;
}

std::string report_json(const SplitReport& report) {
  nlohmann::ordered_json json = {{"split", report.split}, {"samples", report.samples}};
  for (const core::BadSample& bad : report.bad) {
    json["not_evaluated"].push_back({{"name", printable(bad.name)}, {"reason", printable(bad.reason)}});
  }
  for (const core::MetricValue& metric : report.metrics) {
    json["metrics"][metric.name] = metric.value;  // not finite: null
  }
  for (const tasks::Table& table : report.tables) {
    json[table.name] = table_json(table);
  }
  return json.dump(2) + "\n";
}

}  // namespace stoker::job

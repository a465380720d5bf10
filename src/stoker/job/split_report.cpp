// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/split_report.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/image_loader.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/job/request.h"
#include "stoker/job/run_folder.h"
#include "stoker/precision/autocast.h"
#include "stoker/tasks/image_classification.h"
#include "stoker/train/evaluate.h"
#include "stoker/train/resolve.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.eval";

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

// The split with its labels in the model's numbering.
data::ImageSplit relabelled(data::ImageSplit split, const std::vector<std::string>& data_classes,
                            const std::vector<std::string>& model_classes) {
  std::vector<std::int64_t> ids;
  for (const std::string& name : data_classes) {
    const auto found = std::ranges::find(model_classes, name);
    if (found == model_classes.end()) {
      std::vector<std::string> known;
      for (const std::string& each : model_classes) {
        known.push_back(printable(each));
      }
      fail<DataError>(kWhere, "class \"{}\" is unknown to the model, which knows {}", printable(name),
                      fmt::join(known, ", "));
    }
    ids.push_back(found - model_classes.begin());
  }
  for (std::int64_t& label : split.labels) {
    label = ids.at(static_cast<std::size_t>(label));
  }
  return split;
}

// The splits that a name means; none of them is empty.
std::vector<const data::ImageSplit*> choose_splits(const data::ImageFolder& folder, const std::string& split) {
  std::vector<const data::ImageSplit*> chosen;
  const auto add = [&](const char* name, const data::ImageSplit& each) {
    if (each.size() > 0 && (split == "all" || split == name)) {
      chosen.push_back(&each);
    }
  };
  add("train", folder.train);
  add("val", folder.val);
  add("test", folder.test);
  if (chosen.empty()) {
    fail<DataError>(kWhere, "the data has no {} split; it has train {}, val {}, test {}", split, folder.train.size(),
                    folder.val.size(), folder.test.size());
  }
  return chosen;
}

std::vector<core::NamedTensor> totals_of(LoadedModel& loaded, const data::ImageFolder& folder,
                                         const data::ImageSplit& split, std::int64_t batch) {
  data::ImageLoaderOptions options;
  options.split = relabelled(split, folder.classes, loaded.card.classes);
  options.channels = loaded.card.pixels.channels;
  options.policy = tasks::evaluation_policy(loaded.card.pixels);
  options.batch = std::min(batch, options.split.size());
  options.shuffle = false;
  options.threads = loaded.device().is_cuda() ? device::cpu_quota().cores : 0;  // a CPU's cores compute
  options.pinned = loaded.device().is_cuda();
  device::PlacedSource source(std::make_unique<data::ImageLoader>(std::move(options)), loaded.device());
  return train::evaluate(*loaded.model, source, precision::autocast_dtype(loaded.card.precision));
}

// The run folder that a checkpoint lies in, at checkpoints/<name>.
fs::path run_of(const fs::path& checkpoint) {
  const fs::path clean = fs::absolute(checkpoint).lexically_normal();  // also of "best" and of "x/best/"
  return (clean.has_filename() ? clean : clean.parent_path()).parent_path().parent_path();
}

}  // namespace

SplitReport evaluate_split(LoadedModel& loaded, const data::ImageFolder& folder, const std::string& split,
                           std::int64_t batch) {
  SplitReport report;
  report.split = split;
  std::vector<core::NamedTensor> totals;
  for (const data::ImageSplit* each : choose_splits(folder, split)) {
    report.samples += each->size();
    auto part = totals_of(loaded, folder, *each, batch);
    if (totals.empty()) {
      totals = std::move(part);
      continue;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      totals[i].tensor = totals[i].tensor.add(part[i].tensor);
    }
  }
  report.metrics = loaded.model->metrics(totals);
  report.classes = tasks::class_rows(totals, loaded.card.classes);
  return report;
}

SplitReport evaluate_run(const fs::path& run, const fs::path& data, const std::string& split,
                         const std::string& checkpoint, const std::string& device) {
  LoadedModel loaded = open_model(run, device, checkpoint);
  fs::path path = data;
  train::Plan cut;
  cut.val = train::kDefaultVal;
  cut.seed = train::kDefaultSeed;
  if (const fs::path above = run_of(loaded.checkpoint); fs::exists(above / "plan.json")) {
    const RunFolder origin = RunFolder::open(above);
    cut = train::plan_from_json(read_text(origin.plan()));
    path = data.empty() ? make_request(origin.config(), {}).data : path;
  }
  if (path.empty()) {
    fail<ConfigError>(kWhere, "{}: does not lie in a run folder, so its data is not known; give DIR",
                      printable(run.native()));
  }
  const data::ImageFolder folder =
      data::open_image_folder(path, {.val = cut.val, .seed = static_cast<std::uint64_t>(cut.seed)});
  const std::string chosen = !split.empty()           ? split
                             : folder.test.size() > 0 ? "test"
                             : folder.val.size() > 0  ? "val"
                                                      : "train";
  return evaluate_split(loaded, folder, chosen, 256);
}

std::string report_table(const SplitReport& report) {
  std::string text =
      fmt::format("{} split{}, {} samples\n", report.split, report.split == "all" ? "s" : "", report.samples);
  for (const core::MetricValue& metric : report.metrics) {
    text += fmt::format("  {:<10} {:.4f}\n", metric.name, metric.value);
  }
  std::size_t width = 5;
  for (const tasks::ClassRow& row : report.classes) {
    width = std::min<std::size_t>(40, std::max(width, printable(row.name).size()));
  }
  text += fmt::format("\n  {:<{}}  samples  precision  recall      f1  most often taken for\n", "class", width);
  const auto share = [](double value) { return std::isnan(value) ? std::string("-") : fmt::format("{:.4f}", value); };
  for (const tasks::ClassRow& row : report.classes) {
    text += fmt::format("  {:<{}}  {:>7}  {:>9}  {:>6}  {:>6}  {}\n", printable(row.name), width, row.samples,
                        share(row.precision), share(row.recall), share(row.f1), printable(row.mostly_taken_for));
  }
  return text;
}

std::string report_json(const SplitReport& report) {
  nlohmann::ordered_json json = {{"split", report.split}, {"samples", report.samples}};
  for (const core::MetricValue& metric : report.metrics) {
    json["metrics"][metric.name] = number(metric.value);
  }
  json["classes"] = nlohmann::ordered_json::array();
  for (const tasks::ClassRow& row : report.classes) {
    json["classes"].push_back({{"name", printable(row.name)},
                               {"samples", row.samples},
                               {"precision", number(row.precision)},
                               {"recall", number(row.recall)},
                               {"f1", number(row.f1)},
                               {"mostly_taken_for", printable(row.mostly_taken_for)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace stoker::job

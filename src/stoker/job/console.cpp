// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/console.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/image_folder.h"
#include "stoker/device/placement.h"
#include "stoker/io/loggers/progress_line.h"
#include "stoker/job/request.h"
#include "stoker/job/run_folder.h"
#include "stoker/models/registry.h"
#include "stoker/train/resolve.h"
#include "stoker/train/settings.h"

namespace stoker::job {
namespace {

// A cell of CSV after RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

std::vector<std::string> values_of(const train::Setting& setting) {
  std::vector<std::string> values;
  if (setting.key == "model") {
    for (const models::ModelInfo& model : models::known_models()) {
      values.push_back(model.name);
    }
  } else if (setting.key == "device") {
    values = {"auto", "cpu", "cuda"};
  } else if (setting.values.find("...") == std::string::npos && setting.values.find('|') != std::string::npos) {
    for (std::size_t start = 0; start <= setting.values.size();) {
      const std::size_t bar = std::min(setting.values.find('|', start), setting.values.size());
      values.push_back(setting.values.substr(start, bar - start));
      start = bar + 1;
    }
  }
  return values;
}

}  // namespace

std::unique_ptr<core::EventSink> console_sink(bool quiet, bool json) {
  io::ProgressOptions options = io::progress_for_stdout();
  if (json) {
    options.mode = io::ProgressMode::kJson;
  } else if (quiet) {
    options.mode = io::ProgressMode::kQuiet;
  }
  return std::make_unique<io::ProgressLine>(options);
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

c10::Device device_named(const std::string& name) { return device::choose_device(name).device; }

std::string settings_help() {
  std::string text = "Settings (auto takes a value back to its default):\n";
  for (const auto group : {train::Group::kBehaviour, train::Group::kPerformance}) {
    text += group == train::Group::kBehaviour ? "\n  What is learnt\n" : "\n  How fast it is learnt\n";
    for (const train::Setting& each : train::settings()) {
      if (each.group == group) {
        text += fmt::format("    {:<19} {}\n    {:<19}   {}; default: {}\n", each.key, each.why, "", each.values, each.fallback);
      }
    }
  }
  text += "\n  The run\n"
          "    run                 a name (runs/NAME, then NAME-2, ...) or a path; default: MODEL-DATA\n"
          "    plan                plan.json of another run: repeats it to the bit\n"
          "    data                the data folder, in a config file\n";
  return text;
}

std::string plan_table(const train::Plan& plan) {
  std::string text;
  for (const core::PlanRow& row : plan.rows()) {
    const bool chosen = row.origin != core::Origin::kDefault;
    text += fmt::format("{} {:<19} {:<18} {:<13} {}\n", chosen ? "*" : " ", row.key, row.value.empty() ? "-" : printable(row.value),
                        core::origin_name(row.origin), row.reason);
  }
  return text;
}

SplitReport evaluate_run(const std::string& run, const std::string& data, const std::string& split, const std::string& checkpoint,
                         const std::string& device) {
  LoadedModel loaded = load_model(run, device_named(device), checkpoint);
  std::filesystem::path folder = data;
  train::Plan cut;
  cut.val = train::kDefaultVal;
  cut.seed = train::kDefaultSeed;
  // A checkpoint lies in its run at checkpoints/<name>.
  const std::filesystem::path above = loaded.checkpoint.parent_path().parent_path();
  if (std::error_code error; std::filesystem::exists(above / "plan.json", error)) {
    const RunFolder origin = RunFolder::open(above);
    cut = train::plan_from_json(read_text(origin.plan()));
    folder = data.empty() ? make_request(origin.config(), {}).data : folder;
  }
  if (folder.empty()) {
    fail<ConfigError>("job.eval", "{}: does not lie in a run folder, so its data is not known; give DIR", printable(run));
  }
  const auto evaluate = [&](const std::string& name) {
    return evaluate_split(loaded, folder, name, cut.val, static_cast<std::uint64_t>(cut.seed), 256);
  };
  if (!split.empty()) {
    return evaluate(split);
  }
  const data::ImageFolder found = data::open_image_folder(folder, {cut.val, static_cast<std::uint64_t>(cut.seed)});
  return evaluate(found.test.size() > 0 ? "test" : found.val.size() > 0 ? "val" : "train");
}

std::string report_table(const SplitReport& report) {
  std::string text = fmt::format("{} split, {} samples\n", report.split, report.samples);
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
    text += fmt::format("  {:<{}}  {:>7}  {:>9}  {:>6}  {:>6}  {}\n", printable(row.name), width, row.samples, share(row.precision),
                        share(row.recall), share(row.f1), printable(row.mostly_taken_for));
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

PredictionWriter::PredictionWriter(const std::string& path, bool json) : path_(path), json_(json) {
  if (!json_) {
    text_ = "file,rank,label,probability\n";
  }
}

void PredictionWriter::write(const Prediction& prediction) {
  const std::string file = printable(prediction.file.native());
  if (json_) {
    nlohmann::ordered_json line = {{"file", file}};
    if (!prediction.error.empty()) {
      line["error"] = prediction.error;
    }
    line["guesses"] = nlohmann::ordered_json::array();
    for (const Guess& guess : prediction.guesses) {
      line["guesses"].push_back({{"label", printable(guess.label)}, {"probability", number(guess.probability)}});
    }
    text_ += line.dump() + "\n";
  } else {
    int rank = 1;
    for (const Guess& guess : prediction.guesses) {
      text_ += fmt::format("{},{},{},{:.6f}\n", csv_cell(file), rank++, csv_cell(printable(guess.label)), guess.probability);
    }
  }
  if (path_.empty() && text_.size() > (std::size_t{1} << 16)) {
    finish();
  }
}

void PredictionWriter::finish() {
  if (!path_.empty()) {
    write_file_atomically(path_, text_);
    return;
  }
  if (std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size() || std::fflush(stdout) != 0) {
    fail<IoError>("job.predict", "standard output cannot be written");
  }
  text_.clear();
}

std::vector<std::string> complete(const std::vector<std::string>& commands, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> candidates;
  if (words.size() <= 1) {
    candidates = commands;
  } else if (const std::string& command = words.front(); command == "train" || command == "plan" || command == "resume") {
    const std::size_t equals = last.find('=');
    if (equals == std::string::npos) {
      for (const train::Setting& each : train::settings()) {
        candidates.push_back(std::string(each.key) + "=");
      }
      candidates.insert(candidates.end(), {"run=", "plan=", "--config", "--quiet", "--json"});
    } else {
      const auto all = train::settings();
      const auto found = std::ranges::find(all, std::string_view(last).substr(0, equals), &train::Setting::key);
      if (found != all.end()) {
        for (const std::string& value : values_of(*found)) {
          candidates.push_back(last.substr(0, equals + 1) + value);
        }
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace stoker::job

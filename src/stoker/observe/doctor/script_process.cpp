// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/script_process.h"

#include <algorithm>
#include <filesystem>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/json_depth.h"
#include "stoker/base/json_fields.h"

namespace stoker::observe::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostLine = std::size_t{1} << 20, kMostRecords = 1'000'000;

// A list of numbers; empty if it holds something else.
std::vector<double> reals(const Json& json) {
  std::vector<double> values;
  for (const Json& each : json) {
    if (!each.is_number()) {
      return {};
    }
    values.push_back(each.get<double>());
  }
  return values;
}

// A flag, a number or a text, as text.
std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.is_null() ? "" : json.dump();
}

class Reader {
 public:
  void add(const Json& record) {
    const std::string kind = text_at(record, "kind");
    if (kind == "period") {
      add_period(record);
    } else if (kind == "loading") {
      add_loading(record);
    } else if (kind == "loader") {
      loaders_[integer_at(record, "loader")].settings = record;
    } else if (kind == "loader_start") {
      Loader& loader = loaders_[integer_at(record, "loader")];
      ++loader.starts;
      loader.start_seconds += std::max(real_at(record, "seconds").value_or(0), 0.0);
    } else if (kind == "first_step") {
      Loader& loader = loaders_[integer_at(record, "loader")];
      ++loader.first_steps;
      loader.longer_seconds +=
          std::max(real_at(record, "seconds").value_or(0) - real_at(record, "usual").value_or(0), 0.0);
    } else if (kind == "batch") {
      Loader& loader = loaders_[integer_at(record, "loader")];
      ++loader.looks;
      loader.tensors = real_at(record, "tensors").value_or(0);
      loader.bytes = real_at(record, "bytes").value_or(0);
    } else if (kind == "ranks") {
      add_ranks(record);
    } else if (kind == "sites") {
      add_sites(record);
    } else if (kind == "calls") {
      add_calls(record);
    } else if (kind == "burst") {
      process_.burst = text_at(record, "trace");
      process_.burst_steps = integer_at(record, "steps") + 1;  // the first one is not marked
    } else if (kind == "waits") {
      add_waits(record);
    } else if (kind == "memory") {
      add_memory(record);
    } else {
      add_words(kind, record);
    }
  }

  ScriptProcess finish() {
    const auto longest = std::ranges::max_element(loaders_, {}, [](const auto& each) { return each.second.looks; });
    if (longest != loaders_.end() && longest->second.settings.is_object()) {
      put_loader(longest->second);
    }
    return std::move(process_);
  }

 private:
  struct Loader {
    Json settings;
    std::int64_t starts = 0, looks = 0, first_steps = 0;
    double tensors = 0, bytes = 0;
    double start_seconds = 0, longer_seconds = 0;  // until the first batch; what the first steps took beyond the usual
  };

  void add_period(const Json& record) {
    const auto parts = record.find("parts");
    Period period{.last_step = integer_at(record, "last_step"),
                  .steps = integer_at(record, "steps"),
                  .seconds = real_at(record, "seconds").value_or(0),
                  .parts = {},
                  .loader = {}};
    if (parts == record.end() || !parts->is_object() || period.seconds <= 0 || period.steps < 1 ||
        process_.periods.size() == kMostRecords) {
      return;
    }
    if (!process_.periods.empty() && period.last_step <= process_.periods.back().period.last_step) {
      process_.tracker_seconds = 0;
      process_.periods.clear();  // an optimizer made its first step: what was before is no training
    }
    process_.tracker_seconds += std::max(real_at(record, "tracker_seconds").value_or(0), 0.0);
    for (const auto& [name, times] : parts->items()) {
      if (const std::vector<double> values = reals(times); values.size() >= 2) {
        period.parts[name] = {values[0], values[1]};
        if (values.size() > 2 && name == "checkpoint") {
          process_.figures["checkpoints.count"] += values[2];
        }
      }
    }
    process_.periods.push_back({.begin = real_at(record, "begin").value_or(0),
                                .resident_bytes = real_at(record, "resident_bytes").value_or(0),
                                .page_faults = std::max(real_at(record, "page_faults").value_or(-1), -1.0),
                                .system_seconds = std::max(real_at(record, "system_seconds").value_or(0), 0.0),
                                .forks = real_at(record, "forks").value_or(0),
                                .period = std::move(period)});
  }

  void add_loading(const Json& record) {
    const auto stages = record.find("stages");
    if (stages == record.end() || !stages->is_object() || process_.loading.size() == kMostRecords) {
      return;
    }
    Loading loading{.at = real_at(record, "at").value_or(0),
                    .samples = integer_at(record, "samples"),
                    .read_bytes = real_at(record, "read_bytes").value_or(0),
                    .private_bytes = real_at(record, "private_bytes").value_or(0),
                    .shared_bytes = real_at(record, "shared_bytes").value_or(0),
                    .stages = {}};
    for (const auto& [name, times] : stages->items()) {
      if (const std::vector<double> values = reals(times); values.size() >= 3) {
        loading.stages.push_back({.name = name,
                                  .seconds = values[0],
                                  .probed_seconds = values[0],
                                  .probed_cpu_seconds = values[1],
                                  .probed_asleep_seconds = std::max(values[0] - values[1] - values[2], 0.0)});
      }
    }
    process_.loading.push_back(std::move(loading));
    process_.threads = std::max(process_.threads, real_at(record, "threads").value_or(1));
    process_.worker = static_cast<int>(std::clamp(real_at(record, "worker").value_or(-1), -1.0, 1e6));
    if (const auto firsts = record.find("firsts"); firsts != record.end() && firsts->is_array()) {
      process_.first_batches = reals(*firsts);
    }
    if (const auto cores = record.find("cores"); cores != record.end() && cores->is_array()) {
      process_.cores = reals(*cores);
    }
  }

  void add_ranks(const Json& record) {
    RankRecord& ranks = process_.ranks;
    ranks.rank = static_cast<int>(std::clamp(real_at(record, "rank").value_or(-1), -1.0, 1e6));
    ranks.world = static_cast<int>(std::clamp(real_at(record, "world").value_or(0), 0.0, 1e6));
    ranks.digest = real_at(record, "digest").value_or(ranks.digest);
    const auto work = record.find("work");
    std::int64_t step = integer_at(record, "first_step");
    for (const double seconds : work != record.end() && work->is_array() ? reals(*work) : std::vector<double>()) {
      ranks.work[step++] = seconds;
    }
    for (const char* name : {"forwards", "syncs", "step", "world", "searching", "unused_bytes"}) {
      if (const auto value = real_at(record, name)) {
        process_.figures["ranks." + std::string(name)] = *value;
      }
    }
  }

  void add_sites(const Json& record) {
    const auto sites = record.find("sites");
    for (const Json& each : sites == record.end() ? Json::array() : *sites) {
      process_.sites.push_back({.part = text_at(each, "part"),
                                .where = text_at(each, "where"),
                                .text = text_at(each, "text"),
                                .module = text_at(each, "module"),
                                .looks = integer_at(each, "looks")});
    }
  }

  void add_calls(const Json& record) {
    const std::string part = text_at(record, "part");
    const auto rows = record.find("rows");
    process_.call_seconds[part] += real_at(record, "seconds").value_or(0);
    for (const Json& each : rows == record.end() ? Json::array() : *rows) {
      process_.calls.push_back({.part = part,
                                .library = text_at(each, "library"),
                                .caller = text_at(each, "caller"),
                                .share = real_at(each, "seconds").value_or(0)});
    }
  }

  void add_waits(const Json& record) {
    const auto rows = record.find("rows");
    const auto steps = static_cast<double>(std::max<std::int64_t>(integer_at(record, "steps"), 1));
    process_.figures["waits.steps"] = steps;
    for (const Json& each : rows == record.end() ? Json::array() : *rows) {
      process_.waits.push_back({.call = text_at(each, "call"),
                                .kind = text_at(each, "kind"),
                                .where = text_at(each, "where"),
                                .text = text_at(each, "text"),
                                .times = real_at(each, "times").value_or(0) / steps,
                                .seconds = real_at(each, "seconds").value_or(0) / steps,
                                .bytes = real_at(each, "bytes").value_or(0) / steps});
    }
  }

  // Of the GPU, after a step.
  void add_memory(const Json& record) {
    const double step = real_at(record, "step").value_or(0), allocated = real_at(record, "allocated").value_or(0);
    const double retries = real_at(record, "retries").value_or(0);
    auto& figures = process_.figures;
    if (!first_memory_) {
      first_memory_ = {step, retries};
      figures["memory.rest_bytes"] = allocated;
    }
    figures["memory.rest_bytes"] = std::min(figures["memory.rest_bytes"], allocated);
    figures["memory.peak_bytes"] = real_at(record, "allocated_peak").value_or(0);
    figures["memory.total_bytes"] = real_at(record, "total").value_or(0);
    if (step > first_memory_->first) {
      figures["memory.retries_per_step"] = (retries - first_memory_->second) / (step - first_memory_->first);
    }
  }

  void add_words(const std::string& kind, const Json& record) {
    if (kind == "process") {
      process_ = {};  // exec: another program goes on under the same number
      first_memory_.reset();
      loaders_.clear();
      process_.pid = static_cast<int>(integer_at(record, "pid"));
      process_.parent = static_cast<int>(integer_at(record, "parent"));
      process_.words["python.version"] = text_at(record, "python");
      for (const auto& [field, name] :
           {std::pair("cores", "process.start_cores"), {"memory", "machine.memory_bytes"}}) {
        if (const auto value = real_at(record, field)) {
          process_.figures[name] = *value;
        }
      }
      if (const auto words = record.find("argv"); words != record.end() && words->is_array()) {
        for (const Json& each : *words) {
          process_.arguments.push_back(text_of(each));
        }
      }
    } else if (kind == "torch") {
      process_.has_torch = true;
      process_.words["torch.version"] = text_at(record, "version");
    } else if (kind == "training") {
      process_.trains = true;
      process_.words["training.gpu_bus_id"] = text_at(record, "gpu");
    } else if (kind == "trouble") {
      process_.trouble.push_back(text_at(record, "text"));
    } else if (kind == "autocast") {
      process_.words["autocast." + text_at(record, "dtype")] = text_at(record, "device");
    } else if (kind == "switches") {
      put_fields("switch", record);
    } else if (kind == "evaluation" || kind == "graphs" || kind == "scaler" || kind == "dropped_result" ||
               kind == "zero_grad" || kind == "out_of_memory" || kind == "kept_outputs" || kind == "page_fault" ||
               kind == "layers") {
      put_fields(kind, record);
    }
  }

  // Numbers as figures, and all else as words: "switch.optimizer.fused".
  void put_fields(const std::string& name, const Json& value) {
    if (value.is_object()) {
      for (const auto& [inner, each] : value.items()) {
        put_fields(name + "." + inner, each);
      }
    } else if (value.is_number()) {
      process_.figures[name] = value.get<double>();
    } else {
      process_.words[name] = text_of(value);
    }
  }

  void put_loader(const Loader& loader) {
    auto& figures = process_.figures;
    for (const auto& [name, value] : loader.settings.items()) {
      if (value.is_number()) {
        figures["loader." + name] = value.get<double>();
      } else if (value.is_boolean()) {
        figures["loader." + name] = value.get<bool>() ? 1 : 0;
      } else {
        process_.words["loader." + name] = text_of(value);
      }
    }
    figures["loader.starts"] = static_cast<double>(loader.starts);
    if (loader.first_steps > 0 && loader.starts > 0) {
      figures["loader.seconds_per_start"] = loader.start_seconds / static_cast<double>(loader.starts);
      figures["loader.longer_first_step"] = loader.longer_seconds / static_cast<double>(loader.first_steps);
    }
    if (loader.looks > 0) {
      figures["loader.tensors_per_batch"] = loader.tensors;
      figures["loader.bytes_per_batch"] = loader.bytes;
    }
  }

  ScriptProcess process_;
  std::map<std::int64_t, Loader> loaders_;
  std::optional<std::pair<double, double>> first_memory_;  // step, and how often the allocator had to try again
};

}  // namespace

int ScriptProcess::workers() const {
  const auto found = figures.find("loader.workers");
  return found == figures.end() ? 0 : static_cast<int>(std::clamp(found->second, 0.0, 65536.0));
}

std::string ScriptProcess::name() const {
  const auto script = std::ranges::find_if(arguments, [](const std::string& each) { return each.ends_with(".py"); });
  std::string name = script == arguments.end() ? "" : std::filesystem::path(*script).filename().string();
  if (const auto module = std::ranges::find(arguments, "-m"); name.empty() && module != arguments.end()) {
    name = module + 1 == arguments.end() ? "" : *(module + 1);
  }
  return name;
}

ScriptProcess read_script_process(std::istream& file) {
  Reader reader;
  std::int64_t bad = 0;
  for (std::string line; std::getline(file, line);) {
    const Json record = line.size() > kMostLine || json_nests_deeper(line) ? Json(Json::value_t::discarded)
                                                                           : Json::parse(line, nullptr, false);
    if (record.is_object()) {
      reader.add(record);
    } else if (!file.eof() && !line.empty()) {
      ++bad;
    }
  }
  ScriptProcess process = reader.finish();
  process.bad_lines = bad;
  return process;
}

std::string state_without_steps(const std::vector<ScriptProcess>& processes) {
  if (processes.empty()) {
    return "Python did not load the doctor's records: it ran with -I, -E or -S, in a cleaned environment, or not at "
           "all";
  }
  if (std::ranges::none_of(processes, &ScriptProcess::has_torch)) {
    return "the script did not import torch";
  }
  return "no optimizer made a step, and no DataLoader gave a batch";
}

}  // namespace stoker::observe::doctor

// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/run_facts.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_depth.h"
#include "stoker/base/json_fields.h"
#include "stoker/observe/doctor/mean_figures.h"

namespace stoker::observe::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kStepEvent = R"({"event":"step",)";  // most lines; read without a parser
constexpr std::size_t kMostSteps = 1'000'000, kFewSteps = 5;
constexpr std::size_t kMostSlow = 10'000, kWarmPeriods = 2;
constexpr std::size_t kMostLine = std::size_t{1} << 22;

Json parsed(std::string_view text) {
  return json_nests_deeper(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

// Of a line that this program wrote: the number after the first `key`.
std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  double number = 0;
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = line.substr(at + key.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// {"open": 1.5} as stages.
std::vector<core::StageFigures> stages_of(const Json& record) {
  std::vector<core::StageFigures> stages;
  const auto list = record.find("loader");
  if (list == record.end() || !list->is_object()) {
    return stages;
  }
  const auto detail = [&](const char* of, const std::string& stage) {
    const auto found = record.find(of);
    return found == record.end() ? std::nullopt : real_at(*found, stage.c_str());
  };
  for (const auto& [name, seconds] : list->items()) {
    if (!seconds.is_number()) {
      continue;
    }
    core::StageFigures stage{.name = name, .seconds = seconds.get<double>()};
    if (const auto cpu = detail("loader_cpu", name)) {
      stage.probed_seconds = stage.seconds;
      stage.probed_cpu_seconds = *cpu;
      stage.probed_asleep_seconds = detail("loader_asleep", name).value_or(0);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

core::SourceFigures loader_of(const Json& record) {
  core::SourceFigures loader;
  loader.wall_seconds = real_at(record, "seconds").value_or(0);
  loader.wait_seconds = real_at(record, "waited").value_or(0);
  loader.samples = integer_at(record, "samples");
  loader.threads = static_cast<int>(std::clamp<std::int64_t>(integer_at(record, "threads"), 0, 1 << 16));
  loader.cores = static_cast<int>(std::clamp<std::int64_t>(integer_at(record, "cores"), 0, 1 << 16));
  loader.copy_seconds = real_at(record, "copy").value_or(0);
  loader.slowest = text_at(record, "slowest");
  loader.slowest_seconds = real_at(record, "slowest_seconds").value_or(0);
  loader.stages = stages_of(record);
  return loader;
}

// Collects the lines of metrics.jsonl.
class Records {
 public:
  void add(const Json& record) {
    const std::string kind = text_at(record, "event");
    if (kind == "anatomy") {
      add_period(record);
    } else if (kind == "fed") {
      loaders_.insert_or_assign(integer_at(record, "step"), loader_of(record));
    } else if (kind == "monitor") {
      figures_.add(record);
    } else if (kind == "slow_step") {
      add_slow(record);
    } else if (kind == "checkpoint") {
      checkpoints_.push_back(integer_at(record, "step"));
    } else if (kind == "run_started") {
      title_ = text_at(record, "title");
    }
  }

  void add_step(std::string_view line) {
    const auto step = number_after(line, "\"step\":"), seconds = number_after(line, "\"seconds\":");
    if (step && seconds && steps_.size() < kMostSteps) {
      steps_.push_back({static_cast<std::int64_t>(*step), *seconds});
    }
  }

  void finish(Facts& facts) {
    facts.job = title_;
    const bool warm = periods_.size() > kWarmPeriods;
    facts.periods.assign(std::make_move_iterator(periods_.begin() + (warm ? 1 : 0)),
                         std::make_move_iterator(periods_.end()));
    for (Period& period : facts.periods) {
      if (const auto found = loaders_.find(period.last_step); found != loaders_.end()) {
        period.loader = std::move(found->second);
      }
    }
    const std::int64_t first =
        facts.periods.empty() ? 0 : facts.periods.front().last_step - facts.periods.front().steps;
    for (SlowStep& step : slow_) {
      if (step.step > first) {
        facts.slow_steps.push_back(std::move(step));
      }
    }
    figures_.put_into(facts);
    std::ranges::sort(checkpoints_);  // two kinds may be saved at one step
    checkpoints_.erase(std::unique(checkpoints_.begin(), checkpoints_.end()), checkpoints_.end());
    const auto late = std::ranges::count_if(checkpoints_, [&](auto step) { return step > first; });
    add_slower_steps(facts, first);
    facts.figures["checkpoints.count"] = {static_cast<double>(late), "run"};
  }

 private:
  void add_period(const Json& record) {
    const auto whole = record.find("whole");
    const auto parts = record.find("phases");
    Period period{.last_step = integer_at(record, "step"),
                  .steps = integer_at(record, "steps"),
                  .seconds = real_at(record, "seconds").value_or(0),
                  .parts = {},
                  .loader = {}};
    if (whole != record.end() || period.seconds <= 0 || period.steps < 1 || parts == record.end()) {
      return;  // the sum of a session repeats its periods
    }
    for (const Json& each : *parts) {
      if (const auto seconds = real_at(each, "seconds")) {
        period.parts[text_at(each, "name")] = {*seconds, real_at(each, "cpu_seconds").value_or(-1)};
      }
    }
    periods_.push_back(std::move(period));
  }

  void add_slow(const Json& record) {
    if (slow_.size() < kMostSlow) {
      slow_.push_back({.step = integer_at(record, "step"),
                       .seconds = real_at(record, "seconds").value_or(0),
                       .usual_seconds = real_at(record, "usual_seconds").value_or(0),
                       .part = text_at(record, "phase"),
                       .cause = text_at(record, "cause")});
    }
  }

  // How much longer the step after a checkpoint takes.
  void add_slower_steps(Facts& facts, std::int64_t first) {
    std::vector<double> after, others;
    for (const auto& [step, seconds] : steps_) {
      if (step > first) {
        const bool next = std::ranges::binary_search(checkpoints_, step - 1);
        (next ? after : others).push_back(seconds);
      }
    }
    if (std::min(after.size(), others.size()) >= kFewSteps) {
      facts.figures["checkpoints.slower_after_seconds"] = {std::max(median(after) - median(others), 0.0), "run"};
    }
  }

  std::string title_;
  std::vector<std::pair<std::int64_t, double>> steps_;  // number, seconds
  std::vector<Period> periods_;
  std::map<std::int64_t, core::SourceFigures> loaders_;  // by the last step of their period
  MeanFigures figures_;
  std::vector<SlowStep> slow_;
  std::vector<std::int64_t> checkpoints_;
};

void read_records(const std::filesystem::path& path, Facts& facts) {
  Records records;
  std::ifstream file(path);
  std::int64_t number = 0, bad = 0, first_bad = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with(kStepEvent)) {
      records.add_step(line);
      continue;
    }
    if (line.empty()) {
      continue;
    }
    const Json record = line.size() < kMostLine ? parsed(line) : Json(Json::value_t::discarded);
    if (record.is_object()) {
      records.add(record);
    } else if (!file.eof() && bad++ == 0) {  // a run that writes has not finished its last line
      first_bad = number;
    }
  }
  if (file.bad()) {
    fail<DataError>("observe.doctor", "{}: cannot be read", printable(path.native()));
  }
  records.finish(facts);
  if (bad > 0) {
    facts.damage.push_back(fmt::format("{}: {} cannot be read, the first is line {}", printable(path.native()),
                                       counted(bad, "line"), first_bad));
  }
}

void read_plan(const std::filesystem::path& path, Facts& facts) {
  const Json json = parsed(read_text(path));
  const auto plan = json.find("plan");
  if (!json.is_object() || plan == json.end() || !plan->is_object()) {
    fail<DataError>("observe.doctor", "{}: holds no plan; is it damaged?", printable(path.native()));
  }
  for (const auto& [key, row] : plan->items()) {
    facts.words["plan." + key] = text_at(row, "value");
    facts.words["origin.plan." + key] = text_at(row, "origin");
  }
}

}  // namespace

Facts run_facts(const std::filesystem::path& folder) {
  Facts facts;
  std::error_code error;
  if (!std::filesystem::exists(folder / "plan.json", error)) {
    fail<DataError>(
        "observe.doctor",
        "{}: {}; give a folder made by `stoker train`, such as runs/NAME, a trace, or a folder of "
        "traces or of records (--keep)",
        printable(folder.native()),
        std::filesystem::exists(folder, error) ? "is not a run folder (it has no plan.json)" : "does not exist");
  }
  read_plan(folder / "plan.json", facts);
  if (std::filesystem::is_regular_file(folder / "metrics.jsonl", error)) {
    read_records(folder / "metrics.jsonl", facts);
  } else {
    facts.damage.push_back(
        fmt::format("{}: is missing, or no regular file", printable((folder / "metrics.jsonl").native())));
  }
  if (std::filesystem::exists(folder / "machine.json", error)) {
    if (const auto cores = real_at(parsed(read_text(folder / "machine.json")), "cores_used")) {
      facts.figures["machine.cores"] = {*cores, "machine"};
    }
  }
  return facts;
}

}  // namespace stoker::observe::doctor

// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/run_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_fields.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFindings = 100;
constexpr std::size_t kMostConfigBytes = 1 << 16;
constexpr std::string_view kStepEvent = R"({"event":"step")";  // most lines; not parsed

// Numbers, and the strings for numbers that JSON lacks.
double number_of(const Json& json) {
  if (json.is_number()) {
    return json.get<double>();
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return json == "inf" ? infinity : json == "-inf" ? -infinity : std::nan("");
}

EvaluationLog evaluation(const Json& event) {
  EvaluationLog log{integer_at(event, "step"), {}};
  if (const auto metrics = event.find("metrics"); metrics != event.end() && metrics->is_object()) {
    for (const auto& [name, value] : metrics->items()) {
      log.metrics.push_back({name, number_of(value)});
    }
  }
  return log;
}

void evaluated(RunLog& log, const Json& event) {
  const std::string split = text_at(event, "split");
  log.monitor.mark("evaluation", integer_at(event, "step"));
  if (split == "test") {
    log.test = evaluation(event);
  }
  if (event.value("best", Json()) == true) {
    log.best = evaluation(event);
    log.better.add(log.best->step, "best " + split + " so far");
  }
}

void apply(RunLog& log, const Json& event) {
  const std::string kind = text_at(event, "event");
  const std::int64_t step = integer_at(event, "step");
  if (kind == "run_started") {
    log.title = text_at(event, "title");
    log.last_step = integer_at(event, "last_step");
  } else if (kind == "evaluated") {
    evaluated(log, event);
  } else if (kind == "monitor") {
    log.monitor.add(event);
  } else if (kind == "checkpoint") {
    log.monitor.mark("checkpoint", step);
  } else if (kind == "fault") {
    log.faults.add(step, text_at(event, "text"));
  } else if (kind == "finding" && log.findings.size() < kMostFindings) {
    log.findings.push_back(text_at(event, "text"));
  } else if (kind == "anatomy" || kind == "slow_step") {
    log.anatomy.add(event);
  } else if (kind == "ranks") {
    log.ranks.add(event);
  } else if (kind == "run_finished") {
    const auto seconds = event.find("seconds");
    log.end = RunEnd{text_at(event, "outcome"), text_at(event, "text"), step,
                     seconds == event.end() ? std::nan("") : number_of(*seconds)};
  }
}

void read_events(RunLog& log, const fs::path& file) {
  std::int64_t damaged = 0;
  each_line(file, [&](std::string_view line) {
    if (!line.starts_with(kStepEvent)) {
      const Json event = parse_any_json(line);
      if (event.is_object()) {
        apply(log, event);
      } else {
        ++damaged;
      }
    }
    return true;
  });
  if (damaged > 0) {
    log.unread.push_back(fmt::format("metrics.jsonl: {} line(s) are not JSON", damaged));
  }
}

// The file as JSON; null if it is missing, damaged or being written.
Json read_json(RunLog& log, const fs::path& file) {
  if (std::error_code error; !fs::is_regular_file(file, error)) {
    return nullptr;
  }
  try {
    Json json = parse_any_json(read_text(file));
    if (json.is_object()) {
      return json;
    }
    log.unread.push_back(fmt::format("{}: is not a JSON object", printable(file.filename().native())));
  } catch (const DataError& error) {
    log.unread.emplace_back(error.what());
  }
  return nullptr;
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void read_plan(RunLog& log, const fs::path& file) {
  const Json json = read_json(log, file);
  if (!json.is_object() || !json.contains("plan") || !json["plan"].is_object()) {
    return;
  }
  for (const auto& [key, row] : json["plan"].items()) {
    if (row.is_object() && row.contains("value")) {
      log.plan.push_back({key, plain(row["value"]), text_at(row, "origin"), text_at(row, "reason")});
    }
  }
}

void read_machine(RunLog& log, const fs::path& file) {
  const Json json = read_json(log, file);
  if (!json.is_object()) {
    return;
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "resumed_at" && value.is_array()) {
      for (const Json& step : value) {
        if (step.is_number_integer()) {
          log.resumed_at.push_back(step.get<std::int64_t>());
        }
      }
    } else {
      log.machine.emplace_back(key, plain(value));
    }
  }
}

// A checkpoint that is replaced during the read is skipped without an error.
void read_checkpoints(RunLog& log, const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().native();
    const Json info = name.starts_with('.') ? Json() : read_json(log, it->path() / "info.json");
    if (info.is_object()) {
      const auto metric = info.find("metric");
      log.checkpoints.push_back({printable(name), integer_at(info, "step"), text_at(info, "task"),
                                 metric != info.end() && metric->is_object() ? text_at(*metric, "name") : ""});
    }
  }
  std::ranges::sort(log.checkpoints, {}, &CheckpointLog::name);
}

double quiet_seconds(const fs::path& folder) {
  double quiet = std::numeric_limits<double>::infinity();
  for (const char* name : {"plan.json", "metrics.csv", "metrics.jsonl"}) {
    std::error_code error;
    const auto written = fs::last_write_time(folder / name, error);
    if (!error) {
      quiet = std::min(quiet, std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count());
    }
  }
  return std::max(0.0, quiet);
}

std::string read_config(const fs::path& file) {
  if (std::error_code error; !fs::is_regular_file(file, error)) {
    return "";
  }
  std::string result, line;
  for (const char c : read_text(file, kMostConfigBytes)) {
    if (c == '\n') {
      result += printable(line) + '\n';
      line.clear();
    } else {
      line += c;
    }
  }
  return result + printable(line);
}

void read_memory(RunLog& log, const fs::path& file) {
  const Json record = read_json(log, file);
  const MemoryPeak peak{integer_at(record, "step"), integer_at(record, "peak"), integer_at(record, "host_peak")};
  if (peak.step > 0 && peak.tensors > 0) {
    log.memory = peak;
  }
}

}  // namespace

nlohmann::ordered_json parse_any_json(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    const bool high = static_cast<unsigned char>(text[i]) >= 0x80;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) >= 0x80) == high) {
      ++end;
    }
    const std::string_view run = text.substr(i, end - i);
    if (high) {
      for (const char c : printable(run)) {  // valid UTF-8 unchanged, other bytes as \xNN
        clean += c == '\\' ? std::string("\\\\") : std::string(1, c);
      }
    } else {
      clean += run;
    }
    i = end;
  }
  return Json::parse(clean, nullptr, false);
}

RunLog read_run_log(const std::filesystem::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    fail<DataError>("io.report", "{}: the run folder does not exist", printable(folder.native()));
  }
  if (!fs::is_regular_file(folder / "plan.json", error)) {
    fail<DataError>("io.report", "{}: is not a run folder (it has no plan.json); give a folder made by `stoker train`",
                    printable(folder.native()));
  }
  RunLog log;
  const fs::path normal = folder.lexically_normal();
  log.path = printable((normal.has_filename() ? normal : normal.parent_path()).native());
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  log.name = printable((whole.has_filename() ? whole : whole.parent_path()).filename().native());
  read_plan(log, folder / "plan.json");
  read_machine(log, folder / "machine.json");
  read_checkpoints(log, folder / "checkpoints");
  read_memory(log, folder / "artifacts" / "memory.json");
  try {
    log.config = read_config(folder / "config.toml");
  } catch (const DataError& problem) {
    log.unread.emplace_back(problem.what());
  }
  read_events(log, folder / "metrics.jsonl");
  log.quiet_seconds = quiet_seconds(folder);
  return log;
}

}  // namespace stoker::io

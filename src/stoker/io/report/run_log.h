// SPDX-License-Identifier: Apache-2.0
// The content of a run folder besides its curves: plan, events, checkpoints, machine, and whether it is still being
// written. Used by the report; read-only, and the run may be active. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/io/report/anatomy_log.h"
#include "stoker/io/report/metrics_table.h"
#include "stoker/io/report/monitor_log.h"
#include "stoker/io/report/ranks_log.h"

namespace stoker::io {

// A value of the plan as text, with its origin.
struct PlanText {
  std::string key, value, origin, reason;
};

struct MetricText {
  std::string name;
  double value = 0;
};

struct EvaluationLog {
  std::int64_t step = 0;
  std::vector<MetricText> metrics;
};

struct CheckpointLog {
  std::string name;  // "best"
  std::int64_t step = 0;
  std::string task;    // "image_classification"
  std::string metric;  // the metric of "best"; empty if unknown
};

struct RunEnd {
  std::string outcome, text;
  std::int64_t step = 0;
  double seconds = 0;
};

// Of the step that artifacts/memory.json records. 0: unknown.
struct MemoryPeak {
  std::int64_t step = 0;
  std::int64_t tensors = 0;  // bytes, highest on the device in that step
  std::int64_t process = 0;  // bytes, highest in main memory over the whole run
};

struct RunLog {
  std::string name;  // of the folder
  std::string path;  // as given by the user
  std::string title;
  std::int64_t last_step = 0;  // the last step of the run; 0: unknown
  std::vector<PlanText> plan;
  std::string config;  // content of config.toml
  std::vector<std::pair<std::string, std::string>> machine;
  std::vector<std::int64_t> resumed_at;
  Occurrences faults, better;  // better: evaluations that were the best so far
  std::vector<std::string> findings;
  std::optional<EvaluationLog> best, test;  // the last one of each
  std::vector<CheckpointLog> checkpoints;
  std::optional<RunEnd> end;
  std::optional<MemoryPeak> memory;
  MonitorLog monitor;
  AnatomyLog anatomy;
  RanksLog ranks;
  double quiet_seconds = 0;         // since a file of the run was last written
  std::vector<std::string> unread;  // files or lines that could not be read, with the reason
};

// DataError if folder is not a run folder: it must contain plan.json.
[[nodiscard]] RunLog read_run_log(const std::filesystem::path& folder);

// Parses JSON; bytes that are not UTF-8 become the text \xNN. Discarded if it is not JSON.
[[nodiscard]] nlohmann::ordered_json parse_any_json(std::string_view text);

}  // namespace stoker::io

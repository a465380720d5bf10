// SPDX-License-Identifier: Apache-2.0
// What a run folder says besides its curves: plan, events, checkpoints, machine, and whether it is still written to.
// Used by the report; reads only, and a folder that is being written meanwhile is normal. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/io/report/metrics_table.h"

namespace stoker::io {

// A plan's value in words, with where it came from.
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
  std::string metric;  // what "best" means; empty if unknown
};

struct RunEnd {
  std::string outcome, text;
  std::int64_t step = 0;
  double seconds = 0;
};

struct RunLog {
  std::string name;  // of the folder
  std::string path;  // as it was given
  std::string title;
  std::int64_t last_step = 0;  // the step after which the run is done; 0: unknown
  std::vector<PlanText> plan;
  std::string config;  // config.toml as it is
  std::vector<std::pair<std::string, std::string>> machine;
  std::vector<std::int64_t> resumed_at;
  Occurrences faults, better;  // better: evaluations that were the best so far
  std::vector<std::string> findings;
  std::optional<EvaluationLog> best, test;  // the last of their kind
  std::vector<CheckpointLog> checkpoints;
  std::optional<RunEnd> end;
  double quiet_seconds = 0;         // since a file of the run was last written
  std::vector<std::string> unread;  // files or lines that could not be read, and why
};

// DataError if folder is no run folder: it must hold plan.json.
[[nodiscard]] RunLog read_run_log(const std::filesystem::path& folder);

// JSON in which bytes that are no UTF-8 have become the text \xNN; discarded where it is no JSON.
[[nodiscard]] nlohmann::ordered_json parse_any_json(std::string_view text);

}  // namespace stoker::io

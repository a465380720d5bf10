// SPDX-License-Identifier: Apache-2.0
// A run as the JSON that page.js draws: header, curves, events, plan, commands. Used by the report. Thread-safe: no
// state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stoker/io/report/metrics_table.h"
#include "stoker/io/report/run_log.h"
#include "stoker/io/report/verdict.h"

namespace stoker::io {

struct ReportedRun {
  RunLog log;
  MetricsTable metrics;
  RunVerdict verdict;
};

// In curves null is a missing value, "nan" a point with a value that was not finite.
[[nodiscard]] nlohmann::ordered_json run_json(const ReportedRun& run);

// [{key, values}] for keys whose values differ between plans; null if a plan does not have the key.
[[nodiscard]] nlohmann::ordered_json plan_differences(const std::vector<ReportedRun>& runs);

}  // namespace stoker::io

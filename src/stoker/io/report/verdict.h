// SPDX-License-Identifier: Apache-2.0
// The first lines of a report: the end or the progress of a run, its result and its time, in plain sentences. Used by
// the report. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/io/report/metrics_table.h"
#include "stoker/io/report/run_log.h"

namespace stoker::io {

enum class RunState { kFinished, kRunning, kStopped, kFailed, kLost };

// A key figure.
struct Tile {
  std::string label, value, note;
};

struct RunVerdict {
  RunState state = RunState::kRunning;
  std::string reached;  // "Reached val accuracy 87.6 % at step 1,692 in 1 min 2 s; test accuracy 89.2 %."
  std::string end;      // "Finished: all 1,692 steps are done."
  std::vector<Tile> tiles;

  // Both sentences, the more urgent one first.
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] RunVerdict verdict(const RunLog& log, const MetricsTable& metrics);

// "finished", ...
[[nodiscard]] std::string_view state_name(RunState state);
// "87.6 %" for accuracies, else four digits.
[[nodiscard]] std::string metric_text(std::string_view metric, double value);
// "0.4 s", "1 min 2 s", "3 h 25 min", "2 days 4 h".
[[nodiscard]] std::string spoken_duration(double seconds);

}  // namespace stoker::io

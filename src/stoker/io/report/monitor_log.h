// SPDX-License-Identifier: Apache-2.0
// The monitor's records of a run as charts on one time axis: seconds since the run began, without the time between a
// stop and a resume. Used by the report. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::io {

class MonitorLog {
 public:
  // A record "monitor" of metrics.jsonl (docs/observe.md). Records that have other fields than expected are skipped.
  void add(const nlohmann::ordered_json& record);
  // The evaluation or the checkpoint after that step, for a mark.
  void mark(const char* kind, std::int64_t step);

  // {t, x, charts: [{title, unit, lines: [{label, mean, lo, hi}]}], marks: [{kind, t, x}]}; null without records.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Row {
    double time;  // at the end of its window, on the axis
    std::int64_t step;
    std::vector<std::pair<std::size_t, double>> values;  // column and value
  };
  struct Mark {
    const char* kind;
    std::int64_t step;
  };
  [[nodiscard]] nlohmann::ordered_json marks() const;

  std::map<std::string, std::size_t, std::less<>> columns_;  // by figure
  std::vector<Row> rows_;
  std::vector<Mark> marks_;
  double last_ = 0;  // seconds since 1970 of the last record
};

}  // namespace stoker::io

// SPDX-License-Identifier: Apache-2.0
// Which figures of the monitor the report draws together. Used by monitor_log.cpp. Thread-safe: no state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::io {

struct MonitorLine {
  std::string label, figure;
};
struct MonitorChart {
  std::string title;
  std::string unit;  // "cores", "bytes", "bytes/s", "share", "W", "Hz", "°C"
  std::vector<MonitorLine> lines;
};

// names: all figures of the run. weight: the sum of a figure's values, to choose among groups of threads. Only charts
// with at least one figure.
[[nodiscard]] std::vector<MonitorChart> monitor_charts(const std::vector<std::string>& names,
                                                       const std::function<double(const std::string&)>& weight);

}  // namespace stoker::io

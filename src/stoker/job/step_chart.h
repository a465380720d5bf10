// SPDX-License-Identifier: Apache-2.0
// A chart of numbers over a step in a terminal, and bars, drawn with block characters. Used by job::memory_text.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::job {

// A bar of `share` (0 to 1) of some columns, to an eighth of a column; at least the thinnest one if share is not 0.
[[nodiscard]] std::string bar_text(double share, std::size_t columns);

struct ChartMark {
  std::string name;
  double at = 0;  // from 0 to 1
};
// The marks of a memory record that are phases.
[[nodiscard]] std::vector<ChartMark> chart_marks(const nlohmann::ordered_json& marks);

// Bytes over the allocations and frees of a step, 60 columns wide, with the marks below. The axis begins at 0, or at
// the lowest value if that is more than half of the highest, and says so. Empty without values.
[[nodiscard]] std::string step_chart(const std::vector<std::int64_t>& line, const std::vector<ChartMark>& marks);

}  // namespace stoker::job

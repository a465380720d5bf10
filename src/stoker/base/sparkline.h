// SPDX-License-Identifier: Apache-2.0
// The course of a figure as a line of characters: "▁▂█". Used in texts for terminals. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

namespace stoker {

struct SparklineStyle {
  bool utf8 = true;                // block characters, else ASCII
  double top = 0;                  // that the highest character stands for; 0: the greatest value
  std::string_view missing = " ";  // of a value that is not known
};

// A character per value, from the lowest (0) to the highest. What is negative or not finite is not known.
template <typename Values>
[[nodiscard]] std::string sparkline(const Values& values, const SparklineStyle& style = {}) {
  constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 8> kAscii = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const auto known = [](double value) { return std::isfinite(value) && value >= 0; };
  double top = style.top;
  for (const double value : values) {
    top = style.top <= 0 && known(value) ? std::max(top, value) : top;
  }
  std::string text;
  for (const double value : values) {
    const double share = known(value) && top > 0 ? std::min(value / top, 1.0) : 0;
    text += known(value) ? (style.utf8 ? kBlocks : kAscii)[static_cast<std::size_t>(share * 7 + 0.5)] : style.missing;
  }
  return text;
}

}  // namespace stoker

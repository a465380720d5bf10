// SPDX-License-Identifier: Apache-2.0
// Ways to do the same work, timed in turns. Used by the benches of memory. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "stoker/base/fmt.h"
#include "stoker/study/paired.h"

namespace stoker::bench {

// Appends time(way) to the `seconds` of each way in each round. Each round begins with another way. Ways: a vector or a
// deque.
template <typename Ways, typename Time>
void take_turns(Ways& ways, int rounds, const Time& time) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      auto& way = ways[(i + static_cast<std::size_t>(round)) % ways.size()];
      way.seconds.push_back(time(way));
    }
  }
}

// "+1.2 % (-3.8 to +10.2), fastest +0.9 %": the median of the ratios by round, its interval, and the ratio of the
// fastest of all rounds, which other work on the machine disturbs least.
inline std::string time_against(std::span<const double> seconds, std::span<const double> plain) {
  const study::Ratio ratio = study::ratio_of(seconds, plain);
  const auto percent = [](double of_plain) { return 100 * (of_plain - 1); };
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f}), fastest {:+.1f} %", percent(ratio.median), percent(ratio.low),
                     percent(ratio.high), percent(std::ranges::min(seconds) / std::ranges::min(plain)));
}

}  // namespace stoker::bench

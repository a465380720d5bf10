// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/paired.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

constexpr double kUncertainty = 0.05;

// The 95 % interval of the median goes from the k-th smallest to the k-th largest of n sorted values. k is the largest
// with 2 P(Binomial(n, 1/2) < k) <= 5 %, so k - 1 values are cut off at each end. 0: no such interval.
int cut_of(int n) {
  double probability = std::pow(0.5, n), below = 0;  // P(exactly k), P(fewer than k)
  int cut = 0;
  for (int k = 0; k < n / 2; ++k) {
    below += probability;
    if (2 * below > kUncertainty) {
      break;
    }
    cut = k + 1;
    probability *= static_cast<double>(n - k) / (k + 1);
  }
  return cut;
}

// `ticks` times the blocks, `wall` the whole measurement.
struct Clocks {
  std::function<double()> ticks, wall;
};

Clocks clocks_of(const PairingOptions& options) {
  if (options.now) {
    return {options.now, options.now};
  }
  return {options.clock == Clock::kWall ? now_s : thread_cpu_s, now_s};
}

// Seconds per call, measured over a block of calls.
double block(const Side& side, int calls, const std::function<double()>& clock) {
  const double start = clock();
  for (int i = 0; i < calls; ++i) {
    side.call();
  }
  if (side.finish) {
    side.finish();
  }
  return (clock() - start) / calls;
}

// Wall-clock seconds of a call of the slower side.
double slower_call(const Side& first, const Side& second, const PairingOptions& options, const Clocks& clocks) {
  if (options.call_seconds > 0) {
    return options.call_seconds;
  }
  (void)block(first, 1, clocks.ticks);
  (void)block(second, 1, clocks.ticks);
  const double once = block(first, 1, clocks.wall);
  return std::max(once, block(second, 1, clocks.wall));
}

}  // namespace

double median_of(std::span<const double> values) {
  if (values.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Ratio ratio_of(std::span<const double> first, std::span<const double> second) {
  if (first.size() != second.size()) {
    fail<ConfigError>("study.paired", "cannot pair {} values with {}; both lists must have the same length",
                      first.size(), second.size());
  }
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> ratios;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!(first[i] > 0 && second[i] > 0)) {
      return {kNothing, kNothing, kNothing, static_cast<int>(first.size())};
    }
    ratios.push_back(first[i] / second[i]);
  }
  const int pairs = static_cast<int>(ratios.size());
  if (pairs == 0) {
    return {kNothing, kNothing, kNothing, 0};
  }
  std::ranges::sort(ratios);
  const int cut = std::max(1, cut_of(pairs));  // the cut-th smallest and the cut-th largest
  return {median_of(ratios), ratios[static_cast<std::size_t>(cut - 1)], ratios[static_cast<std::size_t>(pairs - cut)],
          pairs};
}

bool is_far(const Ratio& ratio, double far) {
  return far > 0 && ratio.pairs >= kFarPairs && (ratio.low >= far || ratio.high <= 1 / far);
}

Paired time_in_turns(const Side& first, const Side& second, const PairingOptions& options) {
  const Clocks clocks = clocks_of(options);
  const double slower = slower_call(first, second, options, clocks);
  const int calls = std::max(1, static_cast<int>(std::min(1e6, options.block_seconds / std::max(slower, 1e-9))));
  std::vector<double> firsts, seconds;
  const double start = clocks.wall();
  for (int pair = 0; pair < options.most_pairs; ++pair) {
    if (pair >= options.least_pairs && clocks.wall() - start >= options.seconds) {
      break;
    }
    if (pair % 2 == 0) {
      firsts.push_back(block(first, calls, clocks.ticks));
      seconds.push_back(block(second, calls, clocks.ticks));
    } else {
      seconds.push_back(block(second, calls, clocks.ticks));
      firsts.push_back(block(first, calls, clocks.ticks));
    }
    const bool decided = pair + 1 == kFarPairs && is_far(ratio_of(firsts, seconds), options.far);
    if (decided || (options.stop && options.stop())) {
      break;
    }
  }
  return {median_of(firsts), median_of(seconds), ratio_of(firsts, seconds)};
}

}  // namespace stoker::study

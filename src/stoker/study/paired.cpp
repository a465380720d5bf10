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

// Between which of n sorted values the median lies with 95 % certainty, the k-th smallest and the k-th largest: the
// largest k with 2 P(Binomial(n, 1/2) < k) <= 5 %, so that k - 1 are cut off at each end. 0: between none.
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

double clock_s(Clock clock) { return clock == Clock::kWall ? now_s() : thread_cpu_s(); }

// Seconds of a call, over a block of them.
double block(const Side& side, int calls, Clock clock) {
  const double start = clock_s(clock);
  for (int i = 0; i < calls; ++i) {
    side.call();
  }
  if (side.finish) {
    side.finish();
  }
  return (clock_s(clock) - start) / calls;
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
    fail<ConfigError>("study.paired", "{} figures cannot be paired with {}", first.size(), second.size());
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

Paired time_in_turns(const Side& first, const Side& second, const PairingOptions& options) {
  (void)block(first, 1, options.clock);
  (void)block(second, 1, options.clock);
  const double once = block(first, 1, Clock::kWall);
  const double slower = std::max(once, block(second, 1, Clock::kWall));
  const int calls = std::max(1, static_cast<int>(std::min(1e6, options.block_seconds / std::max(slower, 1e-9))));
  std::vector<double> firsts, seconds;
  const Stopwatch watch;
  for (int pair = 0; pair < options.most_pairs; ++pair) {
    if (pair >= options.least_pairs && watch.seconds() >= options.seconds) {
      break;
    }
    if (pair % 2 == 0) {
      firsts.push_back(block(first, calls, options.clock));
      seconds.push_back(block(second, calls, options.clock));
    } else {
      seconds.push_back(block(second, calls, options.clock));
      firsts.push_back(block(first, calls, options.clock));
    }
    if (options.stop && options.stop()) {
      break;
    }
  }
  return {median_of(firsts), median_of(seconds), ratio_of(firsts, seconds)};
}

}  // namespace stoker::study

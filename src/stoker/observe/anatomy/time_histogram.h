// SPDX-License-Identifier: Apache-2.0
// Quantiles of many durations in bounded memory: counts in bins whose width is a 32nd of their value or less. Used by
// StepAnatomy for each phase. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::observe {

class TimeHistogram {
 public:
  TimeHistogram();
  // Negative counts as 0; beyond 8,000 s as the longest.
  void add(double seconds);
  // Forgets all.
  void clear();
  [[nodiscard]] std::int64_t count() const { return count_; }
  // Of the durations so far, in seconds: within 1.6 %, or 1 ns. share: from 0 to 1, 0.5 is the median. -1: there are
  // none.
  [[nodiscard]] double quantile(double share) const;

 private:
  std::vector<std::uint32_t> bins_;
  std::int64_t count_ = 0;
};

}  // namespace stoker::observe

// SPDX-License-Identifier: Apache-2.0
// When a source of figures is read again: after its period, or later if reading it is expensive, so that it costs at
// most a fixed share of a core. Used by the monitor. One thread.
#pragma once

#include <algorithm>

namespace stoker::observe {

class Pace {
 public:
  // share: of a core, at most.
  Pace(double period, double share) : period_(period), share_(share) {}

  [[nodiscard]] bool due(double now) const { return now >= next_ - kSlack; }
  // It was read at `now`; the reading took `cpu_seconds` of CPU time.
  void read(double now, double cpu_seconds) { next_ = now + std::max(period_, cpu_seconds / share_); }

 private:
  static constexpr double kSlack = 0.05;  // seconds: callers come a little early or late
  double period_, share_;
  double next_ = 0;
};

}  // namespace stoker::observe

// SPDX-License-Identifier: Apache-2.0
// recompute=auto: which segments to recompute so that a pass fits and loses the least time. Knows neither a model nor a
// device: it is told what each segment saves and costs, and asks for real passes to verify. Called by
// job::choose_recomputation(). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/memory/measure_segments.h"

namespace stoker::memory {

// For each segment, whether backward computes it again.
using RecomputeSet = std::vector<bool>;

// Bytes of the segments' tensors at the peak of a backward pass, by a model of it: while backward is in a segment,
// there is what this segment saves (recomputed or not, it needs this now), what the kept segments before it save, and
// the outputs so far. Gradients and scratch memory come on top.
[[nodiscard]] std::int64_t activation_peak(const std::vector<SegmentCost>& costs, const RecomputeSet& set);

// Of the sets with an activation_peak() of at most `most`, one with the least seconds; all segments if there is none.
// Exact but for rounding: savings count in units of 1/16384 of their sum, rounded up.
[[nodiscard]] RecomputeSet least_recomputation(const std::vector<SegmentCost>& costs, std::int64_t most);

// Seconds that the set adds to a pass, at most.
[[nodiscard]] double added_seconds(const std::vector<SegmentCost>& costs, const RecomputeSet& set);
// As recompute= takes it: "none", "all" or names.
[[nodiscard]] std::string recompute_text(const std::vector<SegmentCost>& costs, const RecomputeSet& set);

// A real forward and backward pass.
struct RecomputeProbe {
  bool fits = false;
  std::int64_t bytes = -1;  // needed beyond what is held between steps; -1: not known
  double seconds = 0;       // 0 if it does not fit
};
using RecomputeProber = std::function<RecomputeProbe(const RecomputeSet&)>;

struct RecomputeSearch {
  std::int64_t limit = 0;   // bytes that a pass may need
  std::int64_t others = 0;  // bytes at its peak besides activation_peak(): a first estimate
  int probes = 6;
  double seconds = 60;   // of all probes; afterwards only that of all segments
  double margin = 0.08;  // of the limit that a proposal leaves free; a pass that fits without it is taken
  std::function<double()> now = [] { return now_s(); };
};

struct RecomputeFound {
  RecomputeSet set;      // the least that fits; all segments if nothing does
  RecomputeProbe probe;  // of it
  int probes = 0;
  std::int64_t kept_bytes = 0;  // of a pass that recomputes nothing, as estimated at the end
};

// For a pass that does not fit if nothing is recomputed: proposes the least set that should fit, and probes it. What a
// probe needed corrects the next proposal: more segments if it did not fit, a set of less time if there was room.
[[nodiscard]] RecomputeFound find_recomputation(const std::vector<SegmentCost>& costs, const RecomputeProber& prober,
                                                const RecomputeSearch& search);

// What a set that fits saves and costs, against a pass that recomputes nothing.
struct RecomputeTrade {
  std::int64_t less = 0;  // bytes
  double slower = 0;      // share of the pass's time
  // The share of memory is under half of the share of time. A pass of half the samples needs about half the memory and
  // is seldom that much slower.
  bool poor = false;
};
[[nodiscard]] RecomputeTrade trade_of(const std::vector<SegmentCost>& costs, const RecomputeFound& found);

}  // namespace stoker::memory

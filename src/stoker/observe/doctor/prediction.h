// SPDX-License-Identifier: Apache-2.0
// How much faster a training would be without a cause of lost time: the recorded periods are replayed with less time in
// them. Thread-safe: no state.
#pragma once

#include <functional>
#include <vector>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

// Times as many samples per second. 80 % of the measured values should lie in the interval.
struct Prediction {
  double speedup = 1, low = 1, high = 1;
  [[nodiscard]] double gain() const { return speedup - 1; }
};

// Seconds that a period would take less; at least 0, less than its seconds.
using Saving = std::function<double(const Period&)>;

// The share of a saving that is certain to come, and the most that may come: 0.8 to 1 if a cure recovers most of it.
struct Reach {
  double low = 0.9, high = 1;
};

// The interval is that of the mean over periods drawn again (a percentile bootstrap, Efron 1979, of 400 draws with a
// fixed seed), its lower end with reach.low of the saving and its upper end with reach.high. The likely value takes the
// middle of the reach. 1 without periods.
[[nodiscard]] Prediction predict(const std::vector<Period>& periods, const Saving& saved, Reach reach = {});

}  // namespace stoker::observe::doctor

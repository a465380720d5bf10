// SPDX-License-Identifier: Apache-2.0
// Asks all rules about a training and orders what they found by the gain that is predicted. Reads facts only: no file,
// no clock, no device. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/observe/doctor/rule.h"

namespace stoker::observe::doctor {

inline constexpr double kCritical = 0.10;
inline constexpr double kSomething = 1.005;  // speed-up

struct Found {
  const Rule* rule = nullptr;
  Finding finding;
  // Not if it may gain nothing at all.
  [[nodiscard]] bool worth_saying() const {
    return critical() || (finding.gain.gain() >= kWorthSaying && finding.gain.low > kSomething);
  }
  [[nodiscard]] bool critical() const {
    return !finding.danger.empty() || (finding.gain.gain() >= kCritical && finding.gain.low > 1 + kWorthSaying);
  }
};

struct Undecided {
  const Rule* rule = nullptr;
  std::string missing;
};

struct Diagnosis {
  std::vector<Found> found;  // dangers first, then most gain first
  std::vector<Undecided> undecided;
  std::vector<const Rule*> healthy;
  // The answer in plain words, one or two sentences.
  std::string verdict;
};

// Without periods the verdict says that there are too few steps, and nothing is found.
[[nodiscard]] Diagnosis examine(const Facts& facts);

}  // namespace stoker::observe::doctor

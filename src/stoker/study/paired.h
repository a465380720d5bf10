// SPDX-License-Identifier: Apache-2.0
// Times two ways to do the same work in turns. The result is the ratio of their times with an interval, since shared
// machines are noisy. Used by the tables of this room and by bench/. One thread at a time.
#pragma once

#include <functional>
#include <span>

namespace stoker::study {

// Ratio of paired values, first / second; NaN without pairs and for values that are not positive.
struct Ratio {
  double median = 0;
  double low = 0, high = 0;  // contains the true median with at least 95 % probability; below 6 pairs: the whole range
  int pairs = 0;
};

// first[i] and second[i] come from the same turn; equal lengths, else ConfigError. The interval is the one of the sign
// test, between two order statistics, for any distribution (Conover, "Practical Nonparametric Statistics", 3rd edition,
// section 3.2).
[[nodiscard]] Ratio ratio_of(std::span<const double> first, std::span<const double> second);

// The middle value, or the mean of the two middle values for an even count; NaN for none.
[[nodiscard]] double median_of(std::span<const double> values);

// One way: call does the work once; finish, if set, waits until the device has finished all calls.
struct Side {
  std::function<void()> call;
  std::function<void()> finish = {};
};

enum class Clock {
  kWall,
  kThreadCpu  // of the calling thread only; least affected by other work on the machine
};

struct PairingOptions {
  int least_pairs = 7, most_pairs = 31;
  double seconds = 2;           // pairs are added until this time is used, within the two bounds
  double block_seconds = 0.05;  // minimum duration of a block of calls, on the slower side
  Clock clock = Clock::kWall;
  // Ratio of the larger time to the smaller. If all of the first kFarPairs pairs exceed it, with the same side slower,
  // no more pairs are taken. 0: always at least least_pairs.
  double far = 0;
  // Seconds of a call of the slower side, if both sides have been called before; then neither is warmed up again. 0:
  // not known.
  double call_seconds = 0;
  std::function<bool()> stop = {};   // called after each pair; true ends the measurement early
  std::function<double()> now = {};  // for tests: a clock in seconds, instead of both clocks
};

inline constexpr int kFarPairs = 3;
// Whether so few pairs are enough: all of them are beyond far, on the same side.
[[nodiscard]] bool is_far(const Ratio& ratio, double far);

struct Paired {
  double first_seconds = 0, second_seconds = 0;  // median per call
  Ratio ratio;                                   // first / second
};

// Calls both sides once to warm up, and again to find the number of calls per block (unless call_seconds is given).
// Then blocks take turns; the side that begins alternates from pair to pair. Exceptions of a side pass through.
[[nodiscard]] Paired time_in_turns(const Side& first, const Side& second, const PairingOptions& options = {});

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// Two ways to do the same work, timed in turns: the ratio of their times, with an interval that tells what the noise of
// a shared machine leaves of it. Used by the tables of this room and by bench/. One thread at a time.
#pragma once

#include <functional>
#include <span>

namespace stoker::study {

// Of paired figures, first / second; NaN without pairs, and where a figure is not positive.
struct Ratio {
  double median = 0;
  double low = 0, high = 0;  // holds the true median with at least 95 % certainty; below 6 pairs: the whole range
  int pairs = 0;
};

// first[i] and second[i] were taken in one turn; equal lengths, else ConfigError. The interval is that of the sign
// test, between two order statistics, and presumes nothing of the distribution (Conover, "Practical Nonparametric
// Statistics", 3rd edition, section 3.2).
[[nodiscard]] Ratio ratio_of(std::span<const double> first, std::span<const double> second);

// The middle value, the mean of the two middle ones for an even number; NaN of none.
[[nodiscard]] double median_of(std::span<const double> values);

// One way: call does the work once; finish, if there is one, waits until a device has done all that was called.
struct Side {
  std::function<void()> call;
  std::function<void()> finish = {};
};

enum class Clock {
  kWall,
  kThreadCpu  // of the calling thread alone, which other work on the machine changes least
};

struct PairingOptions {
  int least_pairs = 7, most_pairs = 31;
  double seconds = 2;           // pairs are added until this is spent, within the two bounds
  double block_seconds = 0.05;  // a figure is that of so many calls in a row, of the slower side
  Clock clock = Clock::kWall;
  // Of the larger time to the smaller: where each of the first kFarPairs pairs is beyond it, with the same side slower,
  // no more are taken. 0: least_pairs holds in any case.
  double far = 0;
  // Of a call of the slower side, where that is known because both sides have been called: neither is called before the
  // first pair then. 0: not known.
  double call_seconds = 0;
  std::function<bool()> stop = {};   // asked after each pair: true ends the measurement early
  std::function<double()> now = {};  // for tests: the clock in seconds, instead of either
};

inline constexpr int kFarPairs = 3;
// Whether so few pairs tell enough: all of them are beyond far, on one side.
[[nodiscard]] bool is_far(const Ratio& ratio, double far);

struct Paired {
  double first_seconds = 0, second_seconds = 0;  // median of a call
  Ratio ratio;                                   // first / second
};

// Both sides are called once for warming up, and again to find how many calls make a block (unless call_seconds tells).
// Then blocks take turns, the side that begins alternating from pair to pair. What a side throws passes through.
[[nodiscard]] Paired time_in_turns(const Side& first, const Side& second, const PairingOptions& options = {});

}  // namespace stoker::study

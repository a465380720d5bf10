// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/thread_governor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stoker/core/load_time.h"

namespace stoker::data {
namespace {

constexpr double kStarved = 0.01;   // target: share of the time that the consumer may wait
constexpr double kGain = 1.02;      // factor of the rate; less may be chance
constexpr double kRoom = 0.9;       // share of the threads' time; busier threads cannot take over work
constexpr double kSlack = 0.1;      // of a thread, for inexact measurements
constexpr int kMostPatience = 256;  // windows

}  // namespace

int ThreadGovernor::look(const core::SourceFigures& now) {
  const core::SourceFigures window = core::between(start_, now);
  if (!due(now.wall_seconds) || window.samples < 1) {
    return threads_;
  }
  start_ = now;
  if (std::exchange(settling_, false)) {
    return threads_;
  }
  const core::StageSums spent = core::sum_of(window.stages);
  const double busy = std::min(spent.seconds, threads_ * window.wall_seconds);  // estimates may be higher
  const Window seen{window.wait_seconds / window.wall_seconds,
                    static_cast<double>(window.samples) / window.wall_seconds, busy / window.wall_seconds,
                    busy > 0 ? std::min(spent.asleep_seconds / busy, 1.0) : 0};
  if (before_ > 0) {
    assess(seen);
    return threads_;
  }
  if (hold_ > 0) {
    --hold_;
    return threads_;
  }
  return change_to(seen.starved > kStarved ? more(seen) : fewer(seen), seen);
}

void ThreadGovernor::consumer_was_away(const core::SourceFigures& now) {
  start_ = now;
  settling_ = true;
}

// Decides whether a change stays. If the consumer still waits, fewer threads may be equally fast.
void ThreadGovernor::assess(const Window& seen) {
  const double wanted = threads_ > before_ ? kGain : 1 / kGain;
  const bool good = seen.starved <= kStarved || (before_starved_ && seen.rate >= wanted * rate_before_);
  if (!good) {
    threads_ = before_;
    settling_ = true;
    hold_ = patience_;
    patience_ = std::min(2 * patience_, kMostPatience);
  }
  before_ = 0;
}

int ThreadGovernor::change_to(int threads, const Window& seen) {
  if (threads != threads_) {
    before_ = threads_;
    rate_before_ = seen.rate;
    before_starved_ = seen.starved > kStarved;
    threads_ = threads;
    settling_ = true;
  }
  return threads_;
}

// The number of threads that the consumer would keep busy if it never waited, at most twice the current number. Not
// more than the cores unless threads wait for a disk.
int ThreadGovernor::more(const Window& seen) const {
  const double wanted = seen.busy / std::max(1 - seen.starved, 1e-3);
  const int most = seen.asleep >= core::kSleepWorthReaders ? limits_.most : limits_.cores;
  if (threads_ > most) {
    return most;
  }
  const int step = static_cast<int>(std::min(std::ceil(wanted - kSlack), 2.0 * threads_));
  return std::min(most, std::max(threads_ + 1, step));
}

int ThreadGovernor::fewer(const Window& seen) const {
  const int enough = std::max(1, static_cast<int>(std::ceil(seen.busy / kRoom)));
  return std::min(threads_, enough);
}

}  // namespace stoker::data

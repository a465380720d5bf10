// SPDX-License-Identifier: Apache-2.0
// Tunes the number of loader threads while running: the fewest that keep the consumer from waiting. Measures a time
// window, tries another number, and goes back if that gained nothing. Used by ImageLoader on its consumer's thread. The
// loaded data does not depend on it.
#pragma once

#include "stoker/core/source_figures.h"

namespace stoker::data {

struct ThreadLimits {
  int start = 1;  // threads to begin with
  int cores = 1;  // threads that may compute at once; more threads are only tried if stages sleep
  int most = 1;   // upper limit of threads; at least cores
};

class ThreadGovernor {
 public:
  explicit ThreadGovernor(const ThreadLimits& limits) : limits_(limits), threads_(limits.start) {}

  // Whether look() is due at that time, in seconds since the source was made.
  [[nodiscard]] bool due(double wall_seconds) const { return wall_seconds - start_.wall_seconds >= kWindow; }
  // figures: of the source since it was made. Returns the number of threads from now on.
  int look(const core::SourceFigures& now);
  // The consumer was busy elsewhere (evaluation, checkpoint): the current window is dropped.
  void consumer_was_away(const core::SourceFigures& now);

 private:
  static constexpr double kWindow = 0.3;  // seconds; enough to measure a rate to a few percent
  // Measurements of a time window.
  struct Window {
    double starved = 0;  // share of the time that the consumer waited
    double rate = 0;     // samples per second
    double busy = 0;     // threads at work, on average
    double asleep = 0;   // share of the threads' time asleep, waiting for a disk or for each other
  };
  [[nodiscard]] int more(const Window& seen) const;
  [[nodiscard]] int fewer(const Window& seen) const;
  void assess(const Window& seen);
  int change_to(int threads, const Window& seen);

  ThreadLimits limits_;
  int threads_;
  core::SourceFigures start_;  // at the start of the window
  bool settling_ = true;       // prefetched batches hide the effect of a change: the next window is dropped
  int before_ = 0;             // threads before the change on trial; 0: no trial
  double rate_before_ = 0;     // samples per second with that number
  bool before_starved_ = false;
  int hold_ = 0;      // windows until the next trial
  int patience_ = 8;  // windows to hold after a change that gained nothing; doubles each time
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// How many loader threads are enough: the fewest that keep the consumer from waiting, found while it works. Looks at
// what a stretch of time shows, tries another number, and goes back where that gained nothing. Used by ImageLoader, on
// its consumer's thread. What is loaded does not depend on it.
#pragma once

#include "stoker/core/source_figures.h"

namespace stoker::data {

struct ThreadLimits {
  int start = 1;  // threads to begin with
  int cores = 1;  // that may compute at a time: more threads are only tried where stages sleep
  int most = 1;   // threads in any case; at least cores
};

class ThreadGovernor {
 public:
  explicit ThreadGovernor(const ThreadLimits& limits) : limits_(limits), threads_(limits.start) {}

  // Whether look() has something to look at, so many seconds after the source was made.
  [[nodiscard]] bool due(double wall_seconds) const { return wall_seconds - start_.wall_seconds >= kWindow; }
  // With the figures of the source since it was made. How many threads to have from now on.
  int look(const core::SourceFigures& now);
  // The consumer was away, at an evaluation or a checkpoint: what lies in it says nothing of the threads.
  void consumer_was_away(const core::SourceFigures& now);

 private:
  static constexpr double kWindow = 0.3;  // seconds that tell a rate to a few percent
  // What a stretch of time showed.
  struct Window {
    double starved = 0;  // share of it that the consumer waited
    double rate = 0;     // samples a second
    double busy = 0;     // threads at work, on average
    double asleep = 0;   // share of their time that they slept, for a disk or for each other
  };
  [[nodiscard]] int more(const Window& seen) const;
  [[nodiscard]] int fewer(const Window& seen) const;
  void judge(const Window& seen);
  int change_to(int threads, const Window& seen);

  ThreadLimits limits_;
  int threads_;
  core::SourceFigures start_;  // of the window
  bool settling_ = true;       // what was made ahead hides what the number of threads does: the first window is dropped
  int before_ = 0;             // threads before the change that is on trial; 0: none is
  double rate_before_ = 0;     // samples a second with them
  bool before_starved_ = false;
  int hold_ = 0;      // windows to let pass until anything is tried again
  int patience_ = 8;  // windows to hold after a change that gained nothing; doubles each time
};

}  // namespace stoker::data

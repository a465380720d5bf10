// SPDX-License-Identifier: Apache-2.0
// A step as one rank takes it, with the moments at which it hands bytes to the others, and from it the time of the same
// step on any number of ranks. Used by `stoker bench ranks`. Thread-safe: no state, no torch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stoker/study/ranks_bench/link.h"

namespace stoker::study {

// What a step asks of the ranks, at a moment counted from its begin.
struct Call {
  enum class Kind {
    kStart,   // of a sum, beside which the step goes on
    kWait,    // for a sum that was started before
    kSum,     // a sum that the step waits for
    kGather,  // a message of each rank to each rank that the step waits for
  };
  Kind kind = Kind::kSum;
  double at_s = 0;
  double bytes = 0;     // of this rank
  std::size_t sum = 0;  // kWait: which of the started ones, from 0
};

// A step whose calls take no time.
struct Course {
  double seconds = 0;
  std::vector<Call> calls;  // by time
};

struct Forecast {
  int ranks = 1;
  Pattern pattern = Pattern::kRing;
  double seconds = 0;          // of the step
  double communication_s = 0;  // of its collectives, one after the other
  double exposed_s = 0;        // what the step waits for: seconds - those of the course
};

// The step on R ranks that each compute as this one does, between any two of which the link is the same. At most two
// sums are under way at a time, as in c10d's Gloo: their latencies overlap, their bytes do not. One rank: the course.
[[nodiscard]] Forecast forecast(const Course& course, const Link& link, Pattern pattern, int ranks);
// The faster one of ring and tree.
[[nodiscard]] Forecast best_forecast(const Course& course, const Link& link, int ranks);

}  // namespace stoker::study

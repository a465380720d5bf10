// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for, and why, from what the ranks told of a period; and the table of all ranks for a
// terminal. Used by job for the progress line and the end of a run. Functions without state; a StragglerWatch is used
// by one thread.
#pragma once

#include <string>

#include "stoker/core/observed.h"

namespace stoker::observe {

// Share of the time that the rank in the middle waits longer than the slowest one, from which on it is named.
inline constexpr double kClearlySlower = 0.1;
// Share of the time in exchanges that nothing hides, from which on it is told if no rank is clearly slower.
inline constexpr double kMuchExposed = 0.25;

struct Straggler {
  enum class Cause {
    kNone,
    kData,     // it waits for batches
    kSaving,   // it saves checkpoints
    kHost,     // its thread waits for a core
    kCompute,  // it computes longer, or what it computes is more
    kNetwork   // no rank is slower: exchanges take long after the last one has come
  };
  Cause cause = Cause::kNone;
  int rank = -1;      // -1: none is clearly slower
  double late = 0;    // seconds a step that the rank in the middle waits longer than it; or that exchanges take
  double share = 0;   // of the time
  std::string brief;  // "slowest rank 3, data"; empty for kNone
  // "rank 3 on node2 is slowest: it waits for data 12 ms a step, others 0.1 ms; others wait 11.9 ms a step for it".
  std::string words;
};

// The rank in the middle is the upper one of two. The cause is the want of a core, if the slowest rank lacks one for
// half of the time that the others wait longer than it, beyond what the rank in the middle of the others lacks; else
// what it has most of beyond that rank.
[[nodiscard]] Straggler find_straggler(const core::RankTimes& times);

// One slow period may be chance: tells what two periods in a row have.
class StragglerWatch {
 public:
  [[nodiscard]] Straggler look(const core::RankTimes& period);

 private:
  Straggler before_;
};

// A row per rank, milliseconds of a step; of many ranks those that waited least. Lines without an end of line after
// the last; empty: no step.
[[nodiscard]] std::string ranks_text(const core::RankTimes& whole);

}  // namespace stoker::observe

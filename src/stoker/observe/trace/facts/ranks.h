// SPDX-License-Identifier: Apache-2.0
// Several ranks of one training side by side: how their steps differ, and who waited for whom in collectives.
// Clocks of machines differ, so only durations are compared: a collective ends on all ranks together, so the rank on
// which it took least came last, and what it took longer elsewhere was waiting. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::trace {

struct RankRow {
  std::int64_t rank = -1;  // -1: the trace does not tell
  std::string file;
  double step = -1;         // ns, mean; -1: no steps
  std::int64_t window = 0;  // ns; of the steps, or from first to last work
  std::int64_t busy = 0, compute = 0, communication = 0;
  std::int64_t exposed_communication = 0;  // of these, while nothing was computed
  std::int64_t waited = 0;                 // ns in collectives for later ranks; of those that could be matched
};

struct Collective {
  std::string name;                  // of its kernel
  std::int64_t matched = 0;          // calls that all ranks made
  std::vector<std::int64_t> time;    // ns of these by rank
  std::vector<std::int64_t> waited;  // ns by rank
};

// The critical path through all ranks: from one matched collective to the next it goes through the rank that came last.
struct RankPath {
  std::int64_t length = -1;          // ns, from the first work to the last; -1: no collective could be matched
  std::int64_t in_collectives = 0;   // of these, from the last arrival to the end of the collective
  std::vector<std::int64_t> by_row;  // ns of the others by rank
};

struct RanksFacts {
  std::vector<RankRow> rows;            // as given
  std::vector<Collective> collectives;  // most waiting first
  std::int64_t unmatched = 0;           // calls that not all ranks made
  std::vector<std::int64_t> missing;    // ranks of the world that no trace is of
  RankPath path;
  int straggler =
      -1;  // row that waited least, if the others waited at least a hundredth of the window longer; -1: none
  [[nodiscard]] double step_skew() const;  // longest mean step / shortest - 1; -1 if unknown
};

[[nodiscard]] RanksFacts ranks_facts(const std::vector<std::unique_ptr<TraceFacts>>& traces);

}  // namespace stoker::observe::trace

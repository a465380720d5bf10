// SPDX-License-Identifier: Apache-2.0
// Times candidates in turns, so that a busy moment affects all of them. Used by job::StepTrials. It has no clock: the
// timed function returns its own seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace stoker::train {

// Seconds for all turns; there are at least two turns if they are quick.
inline constexpr double kTurnsSeconds = 0.08;

// time(i): seconds of one run of candidate i. The first run of each candidate, which builds and searches kernels, does
// not count, unless it takes longer than too_slow: then it is the only run of that candidate.
// Returns for each candidate the time that three of four runs stay below: if another program uses a core now and then,
// a step on all cores is fast only once in a while, and the run will meet the same program; a single slow run proves
// nothing.
[[nodiscard]] std::vector<double> take_turns(std::size_t count, const std::function<double(std::size_t)>& time,
                                             double too_slow);

}  // namespace stoker::train

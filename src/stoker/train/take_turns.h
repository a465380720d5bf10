// SPDX-License-Identifier: Apache-2.0
// Times things side by side: they take turns, so that a busy moment hits all of them. Used by job::StepTrials. Knows no
// clock: what is timed reports its own seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace stoker::train {

// Seconds of all turns, of which there are at least two, where that is quick.
inline constexpr double kTurnsSeconds = 0.08;

// time(i): seconds of one go of the i-th. The first go of each, for which kernels are built and searched for, counts
// for nothing, unless it takes longer than too_slow: then it is that one's only go.
// For each, what three of four goes stay below: where another program takes a core now and then, a step on all cores is
// quick once in a while, and the run will meet the same program; one slow go alone says nothing.
[[nodiscard]] std::vector<double> take_turns(std::size_t count, const std::function<double(std::size_t)>& time,
                                             double too_slow);

}  // namespace stoker::train

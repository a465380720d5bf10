// SPDX-License-Identifier: Apache-2.0
// The steps of training or inference that a program marked in its trace. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/observe/trace/facts/intervals.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

struct Step {
  std::string name;  // "ProfilerStep#12"
  Interval time;     // of the host
};

// By begin; of the thread that marks most. Steps may overlap. Empty if the program marks none.
[[nodiscard]] std::vector<Step> steps_of(const Trace& trace);

// From the first to the last event of any kind; empty interval for a trace without events.
[[nodiscard]] Interval whole_time(const Trace& trace);
// The steps' union, or the whole time if there are none.
[[nodiscard]] Intervals step_time(const Trace& trace, const std::vector<Step>& steps);

}  // namespace stoker::observe::trace

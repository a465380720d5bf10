// SPDX-License-Identifier: Apache-2.0
// The facts of a recorded trace: a period for each step that the program marked, or one of the whole trace. Its parts
// are what the first device did (compute, communication, copies), and for its idle time what it waited for; without a
// device, what the main thread did outside operators. Thread-safe: no state.
#pragma once

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::doctor {

// Parts: "compute", "communication", "copy" (each while the device did nothing else), "overlap"; idle time by the keys
// of trace::doing_key(); "operators" without a device. Words: "idle.fetch.name", the call that most of that idle time
// is charged to. Figures: "idle.fetch.times", pieces of it per step; "kernels.per_step", "kernels.median_seconds".
[[nodiscard]] Facts trace_facts(const trace::TraceFacts& trace);

}  // namespace stoker::observe::doctor

// SPDX-License-Identifier: Apache-2.0
// The facts of a burst: the few steps of a script on a GPU that the shim recorded with PyTorch's profiler
// (docs/doctor-script.md). Thread-safe: no state.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/doctor/script_process.h"
#include "stoker/observe/trace/facts/facts.h"

namespace stoker::observe::doctor {

// A profiler slows down the host, 1.4 to 2.3 times where launches are the limit (bench/results/doctor-gpu.txt), and not
// the GPU. So of these facts the GPU's work is what was recorded, and its idle time is scaled to what remains of
// step_seconds: first the time in which the host worked, then its waits. recorded_steps: of the whole trace.
// Figures: "step.seconds", "device.seconds" and "host.seconds", per step without the profiler; the last is what the
// host needs for its own work. Facts without periods if the trace holds no work of a device.
[[nodiscard]] Facts burst_facts(const trace::TraceFacts& trace, double step_seconds, std::int64_t recorded_steps);

// Of the process that trains, with the lines at which it was seen; null if it recorded none. A trace that cannot be
// read is named in damage.
[[nodiscard]] std::shared_ptr<const Facts> read_burst(const std::filesystem::path& folder, const ScriptProcess& trainer,
                                                      std::vector<std::string>& damage);

}  // namespace stoker::observe::doctor

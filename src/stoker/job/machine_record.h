// SPDX-License-Identifier: Apache-2.0
// machine.json of a run folder: the machine and the versions of a run, for reports and for comparing runs. Written by
// Job. Thread-safe: no state.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>

namespace stoker::job {

// Facts of this machine and process; resumed_step above 0 is appended to "resumed_at" of the existing file.
void record_machine(const std::filesystem::path& run, c10::Device device, std::int64_t resumed_step);

}  // namespace stoker::job

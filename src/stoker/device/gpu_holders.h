// SPDX-License-Identifier: Apache-2.0
// Other processes on the device of a training. Used by the placement check and by job. Thread-safe: no state.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/device/nvml.h"

namespace stoker::device {

// As "pid 4711 (python3) holds 40.1 GiB"; empty on a CPU, if there are none, or if NVML does not tell. we_hold: this
// process holds memory there, too.
[[nodiscard]] std::vector<std::string> busy_processes(c10::Device device, bool we_hold = false);

// The same of a list, for the process `own`. In a container NVML may list it under another number.
[[nodiscard]] std::vector<std::string> describe_others(const std::vector<GpuHolder>& holders, int own, bool we_hold,
                                                       const std::filesystem::path& root = "/");

// "pid 4711 (python3) holds 40.1 GiB", or "pid 4711 of the host (not visible from here) holds 40.1 GiB". root: prefix
// of /proc.
[[nodiscard]] std::string describe(const GpuHolder& holder, const std::filesystem::path& root = "/");

}  // namespace stoker::device

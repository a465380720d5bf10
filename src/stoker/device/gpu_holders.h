// SPDX-License-Identifier: Apache-2.0
// Other processes on the device of a training. Used by the placement check and by job. Thread-safe: no state.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "stoker/device/nvml.h"

namespace stoker::device {

// As "pid 4711 (python3) holds 40.1 GiB"; empty on a CPU, if there are none, or if NVML does not tell.
[[nodiscard]] std::vector<std::string> busy_processes(c10::Device device);

// "pid 4711 (python3) holds 40.1 GiB"; without a name if the process is in another pid namespace.
[[nodiscard]] std::string describe(const GpuHolder& holder);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// GPM, the performance counters of GPUs from Hopper on: what share of the time multiprocessors, tensor cores and memory
// worked. Used by nvml.cpp. An activity is used by one thread at a time.
#pragma once

#include <memory>

#include "stoker/device/nvml.h"
#include "stoker/device/nvml_library.h"

namespace stoker::device {

// Null if the GPU or the driver has no such counters. Must not outlive the library.
[[nodiscard]] std::unique_ptr<GpuActivity> gpm_activity(const NvmlLibrary& library, nvml::Device device);

}  // namespace stoker::device

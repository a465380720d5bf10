// SPDX-License-Identifier: Apache-2.0
// Makes batches of resident images on one kind of device. Thread-safe.
#pragma once

#include <c10/core/Device.h>

#include "stoker/resident/gather.h"

namespace stoker::resident {

// Makes the rows on that device; on CUDA in the current stream, without waiting. DeviceError if it cannot start.
using Gatherer = void(const ImageGather& work, c10::Device device);

// Null if that kind of device is missing or has no gatherer.
[[nodiscard]] Gatherer* find_gatherer(c10::DeviceType kind);

// The name of the CUDA gatherer in libstoker_cuda.
inline constexpr const char* kCudaGatherer = "resident.gather";

}  // namespace stoker::resident

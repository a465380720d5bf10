// SPDX-License-Identifier: Apache-2.0
// What makes batches of resident images on a kind of device. Thread-safe.
#pragma once

#include <c10/core/Device.h>

#include "stoker/resident/gather.h"

namespace stoker::resident {

// Makes the rows on that device; on CUDA in its current stream, without waiting. DeviceError if it cannot be started.
using Gatherer = void(const ImageGather& work, c10::Device device);

// Null where that kind of device is missing, or has none.
[[nodiscard]] Gatherer* find_gatherer(c10::DeviceType kind);

// The name under which libstoker_cuda offers CUDA's.
inline constexpr const char* kCudaGatherer = "resident.gather";

}  // namespace stoker::resident

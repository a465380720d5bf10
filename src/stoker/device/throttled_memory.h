// SPDX-License-Identifier: Apache-2.0
// How much a device holds, for a figure that each step shows: read from the kernel or driver ten times a second at
// most. Used by job and by the benches of the step. What it returns belongs to one thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace stoker::device {

// Each call gives Backend::allocated() as it was at most 0.1 s ago; -1 where the device cannot tell.
[[nodiscard]] std::function<std::int64_t()> throttled_memory(c10::Device device);

}  // namespace stoker::device

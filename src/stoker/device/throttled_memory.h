// SPDX-License-Identifier: Apache-2.0
// Memory in use on a device, for a value that each step shows: read from the kernel or driver at most ten times per
// second. Used by job and by the benches of the step. The returned function belongs to one thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>

namespace stoker::device {

// Each call returns Backend::allocated() from at most 0.1 s ago; -1 if unknown.
[[nodiscard]] std::function<std::int64_t()> throttled_memory(c10::Device device);

}  // namespace stoker::device

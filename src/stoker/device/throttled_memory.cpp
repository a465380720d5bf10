// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/throttled_memory.h"

#include "stoker/base/clock.h"
#include "stoker/device/backend.h"

namespace stoker::device {

std::function<std::int64_t()> throttled_memory(c10::Device device) {
  return [device, next = 0.0, bytes = std::int64_t{-1}]() mutable {
    if (const double now = now_s(); now >= next) {
      bytes = backend_for(device).allocated(device);
      next = now + 0.1;
    }
    return bytes;
  };
}

}  // namespace stoker::device

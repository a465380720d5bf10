// SPDX-License-Identifier: Apache-2.0
// Hears the allocations of tensors on a device: Stoker's allocator on a CPU, torch's caching allocator on CUDA. Used by
// memory::StepRecording. Thread-safe.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include "stoker/device/host_allocator.h"

namespace stoker::device {

// Whether listen_to_allocations() has an effect there.
[[nodiscard]] bool can_hear_allocations(c10::Device device);
// One listener at a time for each kind of device; null: none. Returns the listener before. `before()` is called on a
// CPU only. On CUDA, all devices are heard, and calls come with the allocator's lock held: the listener may not use
// CUDA.
AllocationListener* listen_to_allocations(c10::Device device, AllocationListener* listener);
// Whether the memory of a storage came from that allocator, so that it is in its totals.
[[nodiscard]] bool is_heard(const c10::Storage& storage, c10::Device device);

}  // namespace stoker::device

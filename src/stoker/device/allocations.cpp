// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/allocations.h"

#include <c10/core/CPUAllocator.h>

#include "stoker/device/backend.h"

namespace stoker::device {
namespace {

using Listen = AllocationListener*(AllocationListener*);

// Of libstoker_cuda; null: not loaded.
Listen* cuda_listen() {
  return reinterpret_cast<Listen*>(find_function("device.listen"));  // as device/allocations_cuda.cpp offers it
}

}  // namespace

bool can_hear_allocations(c10::Device device) {
  return device.is_cpu() ? host_allocator_installed() : device.is_cuda() && cuda_listen() != nullptr;
}

AllocationListener* listen_to_allocations(c10::Device device, AllocationListener* listener) {
  if (device.is_cpu()) {
    return listen_to_host_allocator(listener);
  }
  Listen* const listen = cuda_listen();
  return listen != nullptr ? listen(listener) : nullptr;
}

bool is_heard(const c10::Storage& storage, c10::Device device) {
  if (storage.device_type() != device.type() || storage.data() == nullptr) {
    return false;
  }
  return !device.is_cpu() || storage.data_ptr().get_deleter() == c10::GetCPUAllocator()->raw_deleter();
}

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/memory_snapshot.h"

#include "stoker/device/backend.h"

namespace stoker::device {
namespace {

// Of libstoker_cuda, as device/memory_snapshot_cuda.cpp offers them; null for other devices.
template <typename Function>
Function* cuda_function(c10::Device device, const char* name) {
  return device.is_cuda() ? reinterpret_cast<Function*>(find_function(name)) : nullptr;
}

}  // namespace

std::int64_t inactive_bytes(c10::Device device) {
  auto* const inactive = cuda_function<std::int64_t(c10::DeviceIndex)>(device, "device.inactive_bytes");
  return inactive != nullptr ? inactive(device.has_index() ? device.index() : c10::DeviceIndex{0}) : -1;
}

bool can_snapshot_memory(c10::Device device) {
  return cuda_function<std::string()>(device, "device.memory_snapshot") != nullptr;
}

void keep_memory_history(c10::Device device, bool on) {
  if (auto* const keep = cuda_function<void(bool)>(device, "device.memory_history")) {
    keep(on);
  }
}

std::string memory_snapshot(c10::Device device) {
  auto* const snapshot = cuda_function<std::string()>(device, "device.memory_snapshot");
  return snapshot != nullptr ? snapshot() : "";
}

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// The allocations of CUDA tensors, for device/allocations.h: the trace of torch's caching allocator. Torch keeps a
// tracker for good, so one is attached when the first listener comes, and costs an atomic read from then on.
#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <mutex>

#include "stoker/device/cuda_entry.h"
#include "stoker/device/host_allocator.h"

namespace stoker::device {
namespace {

std::atomic<AllocationListener*> heard_by = nullptr;

void hear(const c10::CachingDeviceAllocator::TraceEntry& entry) {
  AllocationListener* const listener = heard_by.load(std::memory_order_acquire);
  if (listener == nullptr) {
    return;
  }
  const auto* const data = reinterpret_cast<const void*>(entry.addr_);
  if (entry.action_ == c10::CachingDeviceAllocator::TraceEntry::ALLOC) {
    listener->made(data, entry.size_);
  } else if (entry.action_ == c10::CachingDeviceAllocator::TraceEntry::FREE_REQUESTED) {
    listener->freed(data, entry.size_);
  }
}

AllocationListener* listen(AllocationListener* listener) {
  static std::once_flag attached;
  std::call_once(attached, [] { c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(&hear); });
  return heard_by.exchange(listener);
}

const CudaFunction offered("device.listen", reinterpret_cast<AnyFunction>(&listen));

}  // namespace
}  // namespace stoker::device

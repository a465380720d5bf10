// SPDX-License-Identifier: Apache-2.0
// The CUDA twin of device/memory_snapshot.h: torch's own functions.
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include "stoker/device/cuda_entry.h"

namespace stoker::device {
namespace {

constexpr std::int64_t kMostEntries = 200'000;  // of the history: far more than a step

void keep_history(bool on) {
  torch::cuda::_record_memory_history(on, /*record_context=*/true, kMostEntries,
                                      /*trace_alloc_record_context=*/false, /*record_cpp_context=*/false,
                                      /*clearHistory=*/on);
}

std::string snapshot() { return torch::cuda::_memory_snapshot_pickled(); }

std::int64_t inactive(c10::DeviceIndex device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);  // over both pools
  return c10::cuda::CUDACachingAllocator::getDeviceStats(device).inactive_split_bytes[kAll].current;
}

const CudaFunction inactive_offered("device.inactive_bytes", reinterpret_cast<AnyFunction>(&inactive));
const CudaFunction history_offered("device.memory_history", reinterpret_cast<AnyFunction>(&keep_history));
const CudaFunction snapshot_offered("device.memory_snapshot", reinterpret_cast<AnyFunction>(&snapshot));

}  // namespace
}  // namespace stoker::device

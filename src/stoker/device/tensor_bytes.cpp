// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/tensor_bytes.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "stoker/device/backend.h"

namespace stoker::device {

class TensorBytes::Counter final : public c10::MemoryReportingInfoBase {
 public:
  // bytes: negative when a block is freed. torch also reports freed blocks that were allocated in an earlier scope, and
  // its totals are for the whole process, so blocks are tracked here.
  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (!device.is_cpu()) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (bytes > 0) {
      std::int64_t& known = blocks_[block];  // not 0: it was freed unseen, and its address is reused
      held_ += bytes - known;
      known = bytes;
      peak_ = std::max(peak_, held_);
    } else if (const auto found = blocks_.find(block); found != blocks_.end()) {
      held_ -= found->second;
      blocks_.erase(found);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = held_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> blocks_;  // allocated in this scope, with their bytes
  std::int64_t held_ = 0, peak_ = 0;
};

TensorBytes::TensorBytes(c10::Device device) : device_(device) {
  if (device_.is_cpu()) {
    counter_ = std::make_shared<Counter>();
    guard_ = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, counter_);
  } else {
    backend_for(device_).reset_peak(device_);
    before_ = backend_for(device_).allocated(device_);
  }
}

TensorBytes::~TensorBytes() = default;

std::int64_t TensorBytes::held() const {
  return counter_ ? counter_->held() : backend_for(device_).allocated(device_) - before_;
}

std::int64_t TensorBytes::peak() const {
  return counter_ ? counter_->peak() : backend_for(device_).memory(device_).peak - before_;
}

void TensorBytes::reset_peak() {
  if (counter_) {
    counter_->reset_peak();
  } else {
    backend_for(device_).reset_peak(device_);
  }
}

}  // namespace stoker::device

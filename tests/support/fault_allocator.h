// SPDX-License-Identifier: Apache-2.0
// Listens to Stoker's allocator of CPU tensors: counts allocations, and makes one of them run out of memory on request,
// with c10::OutOfMemoryError, like a GPU's allocator. Proves "no growth over many steps" and "a step that runs out of
// memory leaves no trace". Counts are process-wide and atomic; arm and disarm from one thread. It covers the storage of
// tensors, but not the scratch memory inside oneDNN and MKL, which does not come from here.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

#include "stoker/device/host_allocator.h"

namespace stoker::testing {

// While it exists, torch's CPU tensors are counted. Tensors may outlive it. One at a time.
class FaultAllocator final : private device::AllocationListener {
 public:
  enum class Threads { kAll, kMaker, kOthers };

  // The threads whose allocations count and fail.
  explicit FaultAllocator(Threads threads = Threads::kAll) : threads_(threads) {
    device::install_host_allocator();
    device::listen_to_host_allocator(this);
  }
  ~FaultAllocator() override { device::listen_to_host_allocator(nullptr); }
  FaultAllocator(const FaultAllocator&) = delete;
  FaultAllocator& operator=(const FaultAllocator&) = delete;

  // The k-th allocation from now throws c10::OutOfMemoryError, and the `more` after it; k = 0 disarms.
  void fail_at(std::int64_t k, std::int64_t more = 0) {
    last_ = k == 0 ? 0 : allocations_ + k + more;
    first_ = k == 0 ? std::numeric_limits<std::int64_t>::max() : allocations_ + k;
  }
  // False once the first planted failure has happened.
  [[nodiscard]] bool armed() const { return allocations_ < first_ && last_ > 0; }
  [[nodiscard]] std::int64_t live_bytes() const { return device::host_allocated(); }
  [[nodiscard]] std::int64_t live_blocks() const { return live_blocks_; }
  [[nodiscard]] std::int64_t allocations() const { return allocations_; }
  // Bytes of the largest one since the last call.
  [[nodiscard]] std::int64_t take_largest() { return largest_.exchange(0); }

 private:
  void before(std::size_t bytes) override {
    const bool of_maker = std::this_thread::get_id() == maker_;
    if (threads_ != Threads::kAll && of_maker != (threads_ == Threads::kMaker)) {
      return;
    }
    largest_ = std::max(largest_.load(), static_cast<std::int64_t>(bytes));
    const std::int64_t index = ++allocations_;
    if (index >= first_ && index <= last_) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "planted failure: no memory for ", bytes, " bytes");
    }
  }
  void made(const void*, std::size_t) noexcept override { ++live_blocks_; }
  void freed(const void*, std::size_t) noexcept override { --live_blocks_; }

  Threads threads_;
  std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<std::int64_t> allocations_ = 0, live_blocks_ = 0, largest_ = 0;
  std::atomic<std::int64_t> first_ = std::numeric_limits<std::int64_t>::max(), last_ = 0;
};

}  // namespace stoker::testing

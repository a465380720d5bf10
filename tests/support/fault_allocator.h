// SPDX-License-Identifier: Apache-2.0
// A CPU allocator for torch that counts allocations and can run out of memory on request: the k-th allocation from now
// throws c10::OutOfMemoryError, like a GPU's allocator. Proves "no growth over many steps" and "a step that runs out of
// memory leaves no trace". Counts are process-wide and atomic; arm and disarm from one thread. It covers the storage of
// tensors, but not the scratch memory inside oneDNN and MKL, which does not come from here.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace stoker::testing {

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (until_failure_.load() > 0 && until_failure_.fetch_sub(1) == 1) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "planted failure: no memory for ", bytes, " bytes");
    }
    ++allocations_;
    largest_ = std::max(largest_.load(), static_cast<std::int64_t>(bytes));
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::DeviceType::CPU};
    }
    // The size is stored before the data, where release() finds it; 64 bytes keep the data aligned as torch expects.
    void* block = std::aligned_alloc(kHead, (bytes + 2 * kHead - 1) / kHead * kHead);
    TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, "can't allocate memory: ", bytes, " bytes");
    std::memcpy(block, &bytes, sizeof bytes);
    live_bytes_ += static_cast<std::int64_t>(bytes);
    ++live_blocks_;
    void* data = static_cast<char*>(block) + kHead;
    return {data, data, &release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  inline static std::atomic<std::int64_t> live_bytes_{0};  // of tensors made while it was installed
  inline static std::atomic<std::int64_t> live_blocks_{0};
  inline static std::atomic<std::int64_t> allocations_{0};    // in total
  inline static std::atomic<std::int64_t> largest_{0};        // bytes of the largest one; a test may reset it to 0
  inline static std::atomic<std::int64_t> until_failure_{0};  // 0: never fails

 private:
  static constexpr std::size_t kHead = 64;

  static void release(void* data) {
    if (data != nullptr) {
      void* block = static_cast<char*>(data) - kHead;
      std::size_t bytes = 0;
      std::memcpy(&bytes, block, sizeof bytes);
      live_bytes_ -= static_cast<std::int64_t>(bytes);
      --live_blocks_;
      std::free(block);
    }
  }
};

// While it exists, torch's CPU tensors come from the counting allocator. Tensors may outlive it. One at a time.
class FaultAllocator {
 public:
  FaultAllocator() : before_(c10::GetCPUAllocator()) {
    CountingAllocator::until_failure_ = 0;
    c10::SetCPUAllocator(&instance(), kPriority);
  }
  ~FaultAllocator() {
    CountingAllocator::until_failure_ = 0;
    c10::SetCPUAllocator(before_, kPriority);
  }
  FaultAllocator(const FaultAllocator&) = delete;
  FaultAllocator& operator=(const FaultAllocator&) = delete;

  // The k-th allocation from now throws c10::OutOfMemoryError, once; k = 0 disarms.
  void fail_at(std::int64_t k) { CountingAllocator::until_failure_ = k; }
  // False once the planted failure has happened.
  [[nodiscard]] bool armed() const { return CountingAllocator::until_failure_ > 0; }
  [[nodiscard]] std::int64_t live_bytes() const { return CountingAllocator::live_bytes_; }
  [[nodiscard]] std::int64_t live_blocks() const { return CountingAllocator::live_blocks_; }
  [[nodiscard]] std::int64_t allocations() const { return CountingAllocator::allocations_; }

 private:
  static constexpr std::uint8_t kPriority = 255;  // SetCPUAllocator ignores lower ones from then on

  // Never destroyed: tensors of static lifetime may still need its deleter at exit.
  static CountingAllocator& instance() {
    static auto* const allocator = new CountingAllocator;
    return *allocator;
  }

  c10::Allocator* before_;
};

}  // namespace stoker::testing

// SPDX-License-Identifier: Apache-2.0
// Counts torch operators while it exists, above all those that would make the host wait for a GPU: a CPU run under
// core::OperatorsOnly then proves that the hot path has no .item() and no sync. Counts the calls of all threads. Create
// and destroy it while no other thread runs operators; one at a time. It cannot detect copies between devices that
// block, because a CPU run has no such copies.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace stoker::testing {

class DispatchCounter {
 public:
  DispatchCounter() {
    current() = this;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&DispatchCounter::seen, &DispatchCounter::done).scopes({at::RecordScope::FUNCTION}));
  }
  ~DispatchCounter() {
    at::removeCallback(handle_);
    current() = nullptr;
  }
  DispatchCounter(const DispatchCounter&) = delete;
  DispatchCounter& operator=(const DispatchCounter&) = delete;

  // Calls of one operator, for example "aten::item".
  [[nodiscard]] std::int64_t calls(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(name);
    return found == calls_.end() ? 0 : found->second;
  }
  // Calls of all operators.
  [[nodiscard]] std::int64_t total() const {
    const std::lock_guard lock(mutex_);
    std::int64_t sum = 0;
    for (const auto& [name, count] : calls_) {
      sum += count;
    }
    return sum;
  }
  // Calls that no other operator made: about the number of kernels that a GPU would run.
  [[nodiscard]] std::int64_t outermost() const {
    const std::lock_guard lock(mutex_);
    return outermost_;
  }
  // Operators after which the host would have waited, with their counts. Empty for a good hot path.
  [[nodiscard]] std::map<std::string, std::int64_t> waits() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::int64_t> found;
    for (const std::string_view name : kWaiting) {
      const auto it = calls_.find(std::string(name));
      if (it != calls_.end()) {
        found.insert(*it);
      }
    }
    return found;
  }

 private:
  // Their result, or its shape, depends on values on the device.
  static constexpr std::array<std::string_view, 13> kWaiting = {
      "aten::item",    "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal",      "aten::allclose",
      "aten::nonzero", "aten::masked_select",       "aten::bincount",   "aten::unique_dim", "aten::_unique2",
      "aten::_unique", "aten::unique_consecutive",  "aten::histc"};

  static DispatchCounter*& current() {
    static DispatchCounter* counter = nullptr;
    return counter;
  }

  static std::unique_ptr<at::ObserverContext> seen(const at::RecordFunction& call) {
    DispatchCounter* counter = current();
    if (counter != nullptr) {
      const std::lock_guard lock(counter->mutex_);
      ++counter->calls_[call.name()];
      counter->outermost_ += depth() == 0 ? 1 : 0;
    }
    ++depth();
    return nullptr;
  }
  static void done(const at::RecordFunction&, at::ObserverContext*) { --depth(); }
  // The number of operators that the thread is in.
  static int& depth() {
    thread_local int depth = 0;
    return depth;
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> calls_;
  std::int64_t outermost_ = 0;
  at::CallbackHandle handle_ = 0;
};

}  // namespace stoker::testing

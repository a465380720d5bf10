// SPDX-License-Identifier: Apache-2.0
// A bounded hand-over between threads: producers wait while it is full, consumers while it is empty. Used by
// device::Prefetcher and device::ResidentRows. Every member may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "stoker/base/error.h"

namespace stoker {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {
    if (capacity < 1) {
      fail<ConfigError>("base.queue", "capacity must be at least 1");
    }
  }

  // False once closed: the value was not taken and stays with the caller.
  [[nodiscard]] bool push(T&& value) {
    {
      std::unique_lock lock(mutex_);
      has_room_.wait(lock, [&] { return closed_ || values_.size() < capacity_; });
      if (closed_) {
        return false;
      }
      values_.push_back(std::move(value));
    }
    has_value_.notify_one();
    return true;
  }

  // Empty once closed and drained.
  [[nodiscard]] std::optional<T> pop() {
    std::optional<T> value;
    {
      std::unique_lock lock(mutex_);
      has_value_.wait(lock, [&] { return closed_ || !values_.empty(); });
      if (values_.empty()) {
        return std::nullopt;
      }
      value.emplace(std::move(values_.front()));
      values_.pop_front();
    }
    has_room_.notify_one();
    return value;
  }

  // Wakes everyone; what is inside can still be popped.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    has_room_.notify_all();
    has_value_.notify_all();
  }

 private:
  std::size_t capacity_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable has_room_, has_value_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace stoker

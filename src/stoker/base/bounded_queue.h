// SPDX-License-Identifier: Apache-2.0
// A bounded queue between threads: producers wait while it is full, consumers while it is empty. Used by
// device::Prefetcher and resident::ResidentRows. It allocates all its memory at the start, so that a thread can always
// hand over an error. Every member may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "stoker/base/error.h"

namespace stoker {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : ring_(capacity) {
    if (capacity < 1) {
      fail<ConfigError>("base.queue", "capacity must be at least 1");
    }
  }

  // False after close(): the value was not taken and stays with the caller.
  [[nodiscard]] bool push(T&& value) {
    {
      std::unique_lock lock(mutex_);
      has_room_.wait(lock, [&] { return closed_ || count_ < ring_.size(); });
      if (closed_) {
        return false;
      }
      ring_[(first_ + count_++) % ring_.size()].emplace(std::move(value));
    }
    has_value_.notify_one();
    return true;
  }

  // Empty after close() when nothing is left.
  [[nodiscard]] std::optional<T> pop() {
    std::optional<T> value;
    {
      std::unique_lock lock(mutex_);
      has_value_.wait(lock, [&] { return closed_ || count_ > 0; });
      if (count_ == 0) {
        return std::nullopt;
      }
      value.swap(ring_[first_]);
      first_ = (first_ + 1) % ring_.size();
      --count_;
    }
    has_room_.notify_one();
    return value;
  }

  // Wakes all threads; remaining values can still be popped.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    has_room_.notify_all();
    has_value_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable has_room_, has_value_;
  std::vector<std::optional<T>> ring_;
  std::size_t first_ = 0, count_ = 0;
  bool closed_ = false;
};

}  // namespace stoker

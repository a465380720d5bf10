// SPDX-License-Identifier: Apache-2.0
// A queue that never makes its producer wait and stays bounded if values can be merged: above a bound, a new value is
// merged into the previous one if possible. Used by EventBus, one per sink; independent of events and torch. The
// producer allocates the list nodes, so the queue allocates nothing. Every member may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

namespace stoker::io {

enum class Wake {
  kValue,   // a value was taken
  kQuiet,   // no value came in time
  kClosed,  // closed and drained
};

template <typename T>
class SinkQueue {
 public:
  // Merges next into newest and returns true, or changes nothing and returns false.
  using Merge = std::function<bool(T& newest, T& next)>;

  // merge: called if more than bound values are queued; may be empty.
  SinkQueue(std::size_t bound, Merge merge) : bound_(bound), merge_(std::move(merge)) {}

  // one: a list with one value. After close() it is dropped.
  void push(std::list<T> one) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || (merge_ && items_.size() > bound_ && merge_(items_.back(), one.front()))) {
        return;
      }
      items_.splice(items_.end(), one);
    }
    wake_.notify_one();
  }
  // Waits at most patience, or without limit if it is zero.
  [[nodiscard]] Wake pop(T& value, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return closed_ || !items_.empty(); };
    if (patience.count() == 0) {
      wake_.wait(lock, ready);
    } else if (!wake_.wait_for(lock, patience, ready)) {
      return Wake::kQuiet;
    }
    if (items_.empty()) {
      return Wake::kClosed;
    }
    value = std::move(items_.front());
    items_.pop_front();
    return Wake::kValue;
  }
  // Queued values can still be popped.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }
  // Closes and drops all queued values.
  void abandon() {
    std::list<T> dropped;  // destroyed without the lock
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      dropped.swap(items_);
    }
    wake_.notify_all();
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::list<T> items_;
  std::size_t bound_;
  Merge merge_;
  bool closed_ = false;
};

}  // namespace stoker::io

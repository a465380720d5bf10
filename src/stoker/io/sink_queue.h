// SPDX-License-Identifier: Apache-2.0
// A queue that never makes its producer wait and never grows for want of a consumer where values can stand for one
// another: beyond a bound, a new value takes the place of the one before it if the two merge. Used by EventBus, one per
// sink; knows neither events nor torch. Values come in list nodes that their producer has made, so that the queue needs
// no memory of its own. Every member may be called from any thread.
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
  kValue,   // there is a value
  kQuiet,   // none came in time
  kClosed,  // closed and drained
};

template <typename T>
class SinkQueue {
 public:
  // Takes next into newest and returns true, or leaves both alone and returns false.
  using Merge = std::function<bool(T& newest, T& next)>;

  // merge: tried when more than bound values wait; none if empty.
  SinkQueue(std::size_t bound, Merge merge) : bound_(bound), merge_(std::move(merge)) {}

  // one: a list of the one value. After close() it is dropped.
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
  // Waits at most patience, or for good if it is zero.
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
  // What is inside can still be popped.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all();
  }
  // Closes and forgets what is inside.
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

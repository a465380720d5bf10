// SPDX-License-Identifier: Apache-2.0
// Limits the number of threads that compute at the same time. More threads may read, since waiting for a disk needs no
// core. Used by SampleReader. Every member may be called from any thread.
#pragma once

#include <condition_variable>
#include <mutex>

namespace stoker::data {

class CpuGate {
 public:
  // most: maximum number of threads, at least 1.
  explicit CpuGate(int most) : free_(most) {}

  // Held while the thread computes.
  class Pass {
   public:
    explicit Pass(CpuGate* gate) : gate_(gate) {  // null: no limit
      if (gate_ != nullptr) {
        std::unique_lock lock(gate_->mutex_);
        gate_->has_room_.wait(lock, [&] { return gate_->free_ > 0; });
        --gate_->free_;
      }
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      if (gate_ != nullptr) {
        {
          const std::lock_guard lock(gate_->mutex_);
          ++gate_->free_;
        }
        gate_->has_room_.notify_one();
      }
    }

   private:
    CpuGate* gate_;
  };

 private:
  std::mutex mutex_;  // guards free_
  std::condition_variable has_room_;
  int free_;
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// The most bytes that tensors held at once within a scope: what a model, its gradients, moments and activations need,
// without the program around them. Used by benches and study's tables. One scope a thread at a time, ended by the
// thread that began it.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace stoker::device {

// CPU: counts what torch's allocator reports to its profiler, so a profiler cannot run on this thread meanwhile. Seen
// are allocations of the thread that made the scope, and of those to which torch hands that thread's state (autograd's
// workers); a tensor that another thread allocated counts neither when it is made nor when it goes. torch
// warns on stderr where a tensor goes that was made unseen. Scratch memory inside oneDNN and MKL comes from elsewhere.
// CUDA: the caching allocator's own figures for the device, whose record of the peak starts anew.
class TensorBytes {
 public:
  explicit TensorBytes(c10::Device device);
  ~TensorBytes();
  TensorBytes(const TensorBytes&) = delete;
  TensorBytes& operator=(const TensorBytes&) = delete;

  // Above what was held when the scope began: begin it before the model is made if the model is to count.
  [[nodiscard]] std::int64_t held() const;
  [[nodiscard]] std::int64_t peak() const;
  // From here on the peak is that of what follows; what is held by now stays counted.
  void reset_peak();

 private:
  class Counter;
  c10::Device device_;
  std::int64_t before_ = 0;           // CUDA: held when the scope began
  std::shared_ptr<Counter> counter_;  // CPU; torch shares it with threads that it hands this one's state
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stoker::device

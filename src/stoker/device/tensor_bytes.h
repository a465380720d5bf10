// SPDX-License-Identifier: Apache-2.0
// Peak of tensor memory in bytes within a scope: the need of a model, its gradients, moments and activations, without
// the rest of the program. Used by benches and study's tables. One scope per thread at a time, ended by the same
// thread.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace stoker::device {

// CPU: counts what torch's allocator reports to its profiler, so no profiler can run on this thread at the same time.
// Counts allocations of the thread that made the scope, and of threads that inherit its state from torch (autograd
// workers). Tensors of other threads are not counted, neither when allocated nor when freed. torch warns on stderr if a
// tensor is freed whose allocation was not seen. Scratch memory inside oneDNN and MKL is not included.
// CUDA: the numbers of the caching allocator for the device; resets its peak.
class TensorBytes {
 public:
  explicit TensorBytes(c10::Device device);
  ~TensorBytes();
  TensorBytes(const TensorBytes&) = delete;
  TensorBytes& operator=(const TensorBytes&) = delete;

  // Bytes above the level at the start of the scope: start it before making the model to include the model.
  [[nodiscard]] std::int64_t held() const;
  [[nodiscard]] std::int64_t peak() const;
  // Restarts the peak; current memory stays counted.
  void reset_peak();

 private:
  class Counter;
  c10::Device device_;
  std::int64_t before_ = 0;           // CUDA: allocated when the scope began
  std::shared_ptr<Counter> counter_;  // CPU; torch shares it with threads that inherit this thread's state
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Copies the detached scalars of a step (loss, gradient norm, ...) to the host without waiting for the device: the step
// writes, the sinks read later on their own threads. One writer; handles may be read from any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::device {

class ScalarRing {
 public:
  // scalars: number per step, 1 ... core::kMaxScalars; slots: number of unread steps before the ring grows. Allocates
  // everything that a step needs: host memory (pinned on CUDA), events, handles.
  ScalarRing(at::Device device, std::size_t scalars, std::size_t slots = 64);
  ~ScalarRing();
  ScalarRing(const ScalarRing&) = delete;
  ScalarRing& operator=(const ScalarRing&) = delete;

  // values: float32, 1-dim [scalars], contiguous, without gradient, on the ring's device; else ConfigError.
  // Starts one copy into the next free slot and marks the stream; never waits, allocates nothing. No extra slot on the
  // device is needed: the copy runs on the stream that wrote the values, before anything overwrites or frees them.
  // read() of the result waits only for that copy. A slot is free when its handle is released, so a handle stays valid
  // while it exists; if all are held, the ring grows by one slot (see slots()).
  [[nodiscard]] std::shared_ptr<const core::PendingScalars> write(const at::Tensor& values);

  // Number of slots; more than requested means that readers keep handles longer than expected.
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }

 private:
  class Slot;
  std::shared_ptr<Slot> make_slot() const;
  std::shared_ptr<Slot>& next_free();

  at::Device device_;
  std::size_t scalars_;
  std::size_t next_ = 0;
  std::vector<std::shared_ptr<Slot>> slots_;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Brings a step's detached scalars (loss, gradient norm, ...) to the host without waiting for the device: the step
// writes, the sinks read later on their own threads. One writer; the handles may be read from any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::device {

class ScalarRing {
 public:
  // scalars: how many each step has, 1 ... core::kMaxScalars; slots: how many steps may be unread before the ring
  // grows. Everything a step needs is allocated here: host memory (pinned on CUDA), events, handles.
  ScalarRing(at::Device device, std::size_t scalars, std::size_t slots = 64);
  ~ScalarRing();
  ScalarRing(const ScalarRing&) = delete;
  ScalarRing& operator=(const ScalarRing&) = delete;

  // values: float32, 1-dim [scalars], contiguous, without gradient, on the ring's device; else ConfigError.
  // Starts one copy into the next free slot and marks the stream; never waits, allocates nothing. A copy needs no slot
  // on the device as well: it runs on the stream that wrote the values, before whatever overwrites or frees them.
  // read() of the result waits for that copy alone. A slot is free when nobody holds its handle any more, so a handle
  // stays right for as long as it lives; should all be held, the ring grows by one slot (see slots()).
  [[nodiscard]] std::shared_ptr<const core::PendingScalars> write(const at::Tensor& values);

  // Slots so far; more than asked for means that readers hold on to handles longer than expected.
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

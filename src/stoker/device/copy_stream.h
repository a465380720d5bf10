// SPDX-License-Identifier: Apache-2.0
// Copies from the host to a device in parallel with its current stream. Backend makes the CUDA version, a handle to the
// one stream that all copies to a device share; a CPU has none, since its batches need no copy. Used by Prefetcher,
// ResidentSet and ResidentRows. For one handle, one thread starts copies and another uses them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "stoker/device/backend.h"

namespace stoker::device {

class CopyStream {
 public:
  virtual ~CopyStream() = default;
  // Starts a copy and returns at once. host must be page-locked, else it waits, and must not change until the copy is
  // done. The result must not be used before await().
  [[nodiscard]] virtual at::Tensor copy(const at::Tensor& host) = 0;
  // Host memory for asynchronous copies; may be freed before its copies are done.
  [[nodiscard]] virtual at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) = 0;
  // Device memory of that many bytes, uint8, to be filled by the next function. Call used_here() before the calling
  // thread's current stream uses it.
  [[nodiscard]] virtual at::Tensor room(std::int64_t bytes) = 0;
  // Like the other copy(), but into a part of such memory.
  virtual void copy(const at::Tensor& host, const at::Tensor& there) = 0;
  // An event on this stream after all copies so far. timing: as in Backend::make_event.
  [[nodiscard]] virtual std::unique_ptr<Event> mark(bool timing) = 0;
  // Later work of the calling thread on the device begins after the event; does not block.
  virtual void await(Event& copied) = 0;
  // Declares that the calling thread's current stream uses the tensor: its memory is not reused for later copies before
  // that work is done.
  virtual void used_here(const at::Tensor& copied) = 0;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Copies from the host to a device beside the work of its current stream. The CUDA one comes from Backend, a handle on
// the one stream that all copies to a device share; a CPU has none, since its batches lie where they are used. Used by
// Prefetcher, ResidentSet and ResidentRows; of one handle one thread starts copies, another uses them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "stoker/device/backend.h"

namespace stoker::device {

class CopyStream {
 public:
  virtual ~CopyStream() = default;
  // Starts a copy and returns at once; host must be page-locked, else it waits, and stay as it is until the copy is
  // done. The result must not be used before await().
  [[nodiscard]] virtual at::Tensor copy(const at::Tensor& host) = 0;
  // Memory of the host that copies need not wait for; it may go before its copies are done.
  [[nodiscard]] virtual at::Tensor host(at::IntArrayRef sizes, at::ScalarType type) = 0;
  // Memory of the device for so many bytes, uint8, to be filled by the next function; before the calling thread's
  // current stream uses it, used_here() must be called.
  [[nodiscard]] virtual at::Tensor room(std::int64_t bytes) = 0;
  // As the other one, into a part of such memory.
  virtual void copy(const at::Tensor& host, const at::Tensor& there) = 0;
  // An event on this stream after all copies so far. timing: as Backend::make_event.
  [[nodiscard]] virtual std::unique_ptr<Event> mark(bool timing) = 0;
  // Work that the calling thread gives the device from now on begins after the event; nobody waits.
  virtual void await(Event& copied) = 0;
  // The tensor is used by the calling thread's current stream: its memory is not given to later copies before that
  // work is done.
  virtual void used_here(const at::Tensor& copied) = 0;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// What the coming batches of a resident split are made of, worked out on the host for some hundred batches at a time
// and brought to the device in two copies, ahead: no batch costs a copy. Used by ResidentSource, one consumer at a
// time.
//
// The cost: a thread that works out order and draws, 0.1 to 0.2 us a sample, beside the step (none on a CPU, where the
// consumer does it, some hundred batches at once); 24 bytes a sample on the way, and three chunks of kMostRows on the
// device, 5 MB.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "stoker/augment/resident_images.h"
#include "stoker/base/bounded_queue.h"
#include "stoker/core/batch.h"
#include "stoker/device/copy_stream.h"

namespace stoker::resident {

// Batches of one epoch, one after the other.
struct ResidentChunk {
  core::Position first;
  std::vector<std::int64_t> begins;  // where in what follows each batch begins, and the end of the last; empty: none
  std::vector<std::int64_t> indices;
  at::Tensor windows;                     // int32 [rows, 4], on the device
  at::Tensor targets;                     // int64 [rows], on the device
  std::unique_ptr<device::Event> copied;  // null on a CPU
  std::exception_ptr error;

  [[nodiscard]] std::int64_t batches() const {
    return begins.empty() ? 0 : static_cast<std::int64_t>(begins.size()) - 1;
  }
};

class ResidentRows {
 public:
  static constexpr std::int64_t kMostRows = 1 << 16;  // of a chunk, but for its last batch

  // From a position within an epoch on; images have a batch an epoch at least. stream: of the device; null for a CPU.
  ResidentRows(std::shared_ptr<const augment::ResidentImages> images, core::Position start,
               std::unique_ptr<device::CopyStream> stream);
  ~ResidentRows();

  // The next chunk, for use by the calling thread's current stream. The first ones are small, so that the first batch
  // is soon there.
  [[nodiscard]] ResidentChunk next();

 private:
  void run();
  ResidentChunk make();
  void send(const augment::WindowRows& rows, ResidentChunk& chunk);

  std::shared_ptr<const augment::ResidentImages> images_;
  std::unique_ptr<device::CopyStream> stream_;
  core::Position position_;  // of the next batch to be worked out
  std::int64_t wanted_ = 1;  // rows of the next chunk
  BoundedQueue<ResidentChunk> ready_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace stoker::resident

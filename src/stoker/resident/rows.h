// SPDX-License-Identifier: Apache-2.0
// Computes the rows of future batches of a resident split on the host, some hundred batches at a time, and copies them
// to the device in advance with two copies, so that no batch needs a copy. Used by ResidentSource, one consumer at a
// time.
//
// Cost: a thread for order and draws, 0.1 to 0.2 us per sample, beside the step (on a CPU the consumer does it, some
// hundred batches at once); 24 bytes per sample to copy; and three chunks of kMostRows on the device, 5 MB.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "stoker/augment/resident_images.h"
#include "stoker/base/bounded_queue.h"
#include "stoker/core/batch.h"
#include "stoker/device/copy_stream.h"

namespace stoker::resident {

// Consecutive batches of one epoch.
struct ResidentChunk {
  core::Position first;
  std::vector<std::int64_t> begins;  // first row of each batch, and the end of the last; empty: no batches
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
  static constexpr std::int64_t kMostRows = 1 << 16;  // per chunk, not counting its last batch

  // Starts at a position within an epoch; images must give at least one batch per epoch. stream: of the device; null
  // for a CPU. ConfigError if the system cannot start the thread.
  ResidentRows(std::shared_ptr<const augment::ResidentImages> images, core::Position start,
               std::unique_ptr<device::CopyStream> stream);
  ~ResidentRows();

  // The next chunk, for use by the calling thread's current stream. The first chunks are small, so that the first batch
  // is ready soon. A call that throws has consumed nothing; the next call makes the same chunk again.
  [[nodiscard]] ResidentChunk next();

 private:
  void run();
  ResidentChunk make();
  void send(const augment::WindowRows& rows, ResidentChunk& chunk);

  std::shared_ptr<const augment::ResidentImages> images_;
  std::unique_ptr<device::CopyStream> stream_;
  core::Position position_;             // of the next batch to compute
  std::int64_t wanted_ = 1;             // rows of the next chunk
  std::optional<ResidentChunk> taken_;  // from ready_, not yet handed out
  bool failed_ = false;                 // the consumer has received an error; the thread waits
  std::counting_semaphore<> go_on_{0};  // the consumer tries again, or is destroyed
  BoundedQueue<ResidentChunk> ready_;
  std::jthread thread_;  // last member: it uses all members above
};

}  // namespace stoker::resident

// SPDX-License-Identifier: Apache-2.0
// Copies batches to the device ahead of the step: a separate thread takes them from the loader and starts their copies
// on a separate stream, so that neither the step nor its thread waits for copies. The page-locked slot of a batch
// returns to the loader only when its copy is done; if the device is lost, never. On a CPU batches pass through without
// a copy and without a thread. One consumer at a time.
#pragma once

#include <atomic>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>

#include "stoker/base/bounded_queue.h"
#include "stoker/core/batch_source.h"
#include "stoker/device/copy_stream.h"

namespace stoker::device {

class Prefetcher final : public core::BatchSource {
 public:
  // Batches on the device or being copied, besides the batch of the step: one is copied while another is used, and one
  // more compensates for a late batch.
  static constexpr std::size_t kAhead = 2;

  // stream: null if batches are already on their device. once: requests nothing of an epoch from the inner source
  // before the first next() after the end of the previous epoch. ConfigError if the system cannot start the thread.
  Prefetcher(std::unique_ptr<core::BatchSource> inner, std::unique_ptr<CopyStream> stream, bool once = false);
  ~Prefetcher() override;  // at any time; waits for the batch that the loader is making, and for copies

  // The same batches, ends of epochs and errors as the inner source, in its order. Offsets of ragged fields stay on the
  // CPU, as core::Batch requires. After an error the thread waits for the next call, which tries again: a batch whose
  // copy failed is copied again.
  [[nodiscard]] std::optional<core::Batch> next() override;
  // The figures of the inner source plus the seconds of copies; with a stream also for a source without figures.
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;

 private:
  // A result of next(): a batch with its copies, the end of an epoch, or an error.
  struct Item {
    std::optional<core::Batch> batch;
    std::exception_ptr error;
    std::shared_ptr<Event> copied;
  };
  // A batch of the loader, kept until its copies are done.
  struct Source {
    core::Batch batch;
    std::shared_ptr<Event> begun;
    std::shared_ptr<Event> copied;  // shared with the item; null: not all copies have begun
  };
  void run();
  Item prepare();
  Item copy(Source& source);
  void let_go(bool all);
  void leak();

  std::unique_ptr<core::BatchSource> inner_;
  std::unique_ptr<CopyStream> stream_;
  bool once_;
  std::optional<Item> item_;  // taken from ready_, not yet handed out
  bool waits_ = false;        // the thread waits for the consumer, who has received what it waits after
  std::atomic<bool> closing_ = false;
  std::counting_semaphore<> go_on_{0};  // the consumer requests more after an error or, with once, an epoch; or the end
  std::list<Source> sources_;           // only used by the thread
  mutable std::mutex mutex_;            // guards copy_seconds_
  double copy_seconds_ = 0;
  BoundedQueue<Item> ready_;
  std::jthread thread_;  // last member: it uses all members above
};

// A source with its batches on the device.
[[nodiscard]] std::unique_ptr<core::BatchSource> prefetched(std::unique_ptr<core::BatchSource> inner,
                                                            c10::Device device, bool once = false);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Batches on their way to the device, ahead of the step: a thread of its own takes them from the loader and starts
// their copies on a stream of its own, so that neither the step nor its thread ever waits for a copy that could have
// been made. A batch's page-locked slot goes back to the loader when its copy is done and not before; where a lost
// device never says so, not at all. On a CPU batches pass through, storage and all, without a thread. One consumer at a
// time.
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
  // Batches that are on the device, or on their way, beyond the one that the step has: while one is used the next is
  // copied, and one more evens out a late batch.
  static constexpr std::size_t kAhead = 2;

  // stream: null where the batches are already on the device they are for. once: nothing of an epoch is asked of the
  // inner source before the first next() beyond the end of the one before.
  Prefetcher(std::unique_ptr<core::BatchSource> inner, std::unique_ptr<CopyStream> stream, bool once = false);
  ~Prefetcher() override;  // at any moment; waits for the loader's batch that is being made, and for copies

  // The same batches, ends of epochs and errors as the inner source's, in its order. Offsets of ragged fields stay on
  // the CPU, as core::Batch demands.
  [[nodiscard]] std::optional<core::Batch> next() override;
  // The inner source's, and the seconds that copies took; with a stream also of a source that tells nothing.
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;

 private:
  // What next() hands out: a batch and its copies, or an epoch's end, or an error.
  struct Item {
    std::optional<core::Batch> batch;
    std::exception_ptr error;
    std::shared_ptr<Event> copied;
  };
  // A batch of the loader that is kept until its copies are done.
  struct Source {
    core::Batch batch;
    std::shared_ptr<Event> begun;
    std::shared_ptr<Event> copied;  // the item's, too
  };
  void run();
  Item copy(core::Batch batch);
  void let_go(bool all);
  void leak();

  std::unique_ptr<core::BatchSource> inner_;
  std::unique_ptr<CopyStream> stream_;
  bool once_;
  bool ended_ = false;  // the consumer has been told of an epoch's end
  std::atomic<bool> closing_ = false;
  std::counting_semaphore<> go_on_{0};  // with once: the consumer asks for the epoch that follows, or goes
  std::list<Source> sources_;           // of the thread alone
  mutable std::mutex mutex_;            // guards copy_seconds_
  double copy_seconds_ = 0;
  BoundedQueue<Item> ready_;
  std::jthread thread_;  // last: it uses all of the above
};

// A source whose batches arrive on the device.
[[nodiscard]] std::unique_ptr<core::BatchSource> prefetched(std::unique_ptr<core::BatchSource> inner,
                                                            c10::Device device, bool once = false);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Batches of a split that lies on the device: gathered, cropped and mirrored there, with no copy a batch. The first
// epoch comes from a loader, so that nothing waits; what it has decoded is then brought to the device by a thread of
// its own, and the first epoch that begins after that is made there. Both make the same batches, bit by bit. One
// consumer at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "stoker/augment/resident_images.h"
#include "stoker/base/clock.h"
#include "stoker/core/batch_source.h"
#include "stoker/resident/rows.h"
#include "stoker/resident/set.h"

namespace stoker::resident {

class ResidentSource final : public core::BatchSource {
 public:
  // Share of a device's free memory that images may take.
  static constexpr double kShare = 0.25;

  // loader: of the same batches, on the device, from `start` on; null: the images are brought there now, and what
  // cannot be had is an error here. With a loader it is a reason to stay with it, as is a device without room, of which
  // `remarks` is told, on a thread of its own; it may be empty.
  ResidentSource(std::unique_ptr<core::BatchSource> loader, std::shared_ptr<const augment::ResidentImages> images,
                 c10::Device device, core::Position start, std::function<void(const std::string&)> remarks = {});
  ~ResidentSource() override;  // at any moment

  [[nodiscard]] std::optional<core::Batch> next() override;
  // The loader's while there is one. Then samples and the wait go on to be counted; there are no stages any more.
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;
  // Whether batches are made on the device by now.
  [[nodiscard]] bool resident() const { return loader_ == nullptr; }

 private:
  void fill(const std::stop_token& stopping);
  void epoch_ended();
  void remark(const std::exception& error) const;
  core::Batch make_batch();

  std::shared_ptr<const augment::ResidentImages> images_;
  c10::Device device_;
  core::Position position_;  // of the next batch; with a loader the epoch alone is kept
  std::function<void(const std::string&)> remarks_;
  std::optional<ResidentSet> set_;
  std::optional<ResidentRows> rows_;
  ResidentChunk chunk_;
  std::int64_t taken_ = 0;  // batches of chunk_
  Stopwatch since_;
  std::atomic<double> wait_seconds_ = 0;  // without the loader
  std::atomic<std::int64_t> rows_made_ = 0;
  mutable std::mutex mutex_;  // guards that the loader goes, and what it leaves
  std::unique_ptr<core::BatchSource> loader_;
  std::optional<core::SourceFigures> left_;
  std::atomic<bool> filled_ = false;
  std::jthread filler_;  // last: it uses some of the above
};

}  // namespace stoker::resident

// SPDX-License-Identifier: Apache-2.0
// Batches of a split that is stored on the device: gathered, cropped and mirrored there, without a copy per batch. The
// first epoch comes from a loader, so that training can start at once. A separate thread then copies the decoded images
// to the device, and the first epoch after that is made there. Both give the same batches, bit by bit. One consumer at
// a time.
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
  // Share of the device's free memory that images may use.
  static constexpr double kShare = 0.25;

  // loader: gives the same batches, on the device, from `start` on. null: copies the images now, and unreadable images
  // are an error here. With a loader, unreadable images, too little memory or no thread for the copy mean that the
  // loader stays in use; remarks (may be empty) is then called, also on another thread.
  ResidentSource(std::unique_ptr<core::BatchSource> loader, std::shared_ptr<const augment::ResidentImages> images,
                 c10::Device device, core::Position start, std::function<void(const std::string&)> remarks = {});
  ~ResidentSource() override;  // at any time

  [[nodiscard]] std::optional<core::Batch> next() override;
  // The figures of the loader while there is one. Afterwards only samples and waiting time are counted, no stages.
  [[nodiscard]] std::optional<core::SourceFigures> figures() const override;
  // Whether batches are made on the device already.
  [[nodiscard]] bool resident() const { return loader_ == nullptr; }

 private:
  void fill(const std::stop_token& stopping);
  void epoch_ended();
  void remark(const std::exception& error) const;
  void start_filler();
  core::Batch make_batch();

  std::shared_ptr<const augment::ResidentImages> images_;
  c10::Device device_;
  core::Position position_;  // of the next batch; with a loader only the epoch is kept
  std::function<void(const std::string&)> remarks_;
  std::optional<ResidentSet> set_;
  std::optional<ResidentRows> rows_;
  ResidentChunk chunk_;
  std::int64_t taken_ = 0;  // batches taken from chunk_
  bool ending_ = false;     // the loader has ended the epoch, next() has not handed that out yet
  Stopwatch since_;
  std::atomic<double> wait_seconds_ = 0;  // without the loader
  std::atomic<std::int64_t> rows_made_ = 0;
  mutable std::mutex mutex_;  // guards the end of the loader and its final figures
  std::unique_ptr<core::BatchSource> loader_;
  std::optional<core::SourceFigures> left_;
  std::atomic<bool> filled_ = false;
  std::jthread filler_;  // last member: it uses members above
};

}  // namespace stoker::resident

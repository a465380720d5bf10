// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/source.h"

#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/base/start_thread.h"
#include "stoker/device/backend.h"

namespace stoker::resident {

ResidentSource::ResidentSource(std::unique_ptr<core::BatchSource> loader,
                               std::shared_ptr<const augment::ResidentImages> images, c10::Device device,
                               core::Position start, std::function<void(const std::string&)> remarks)
    : images_(std::move(images)),
      device_(device),
      position_(start),
      remarks_(std::move(remarks)),
      loader_(std::move(loader)) {
  if (position_.epoch < 0 || position_.step < 0 || position_.step > images_->steps_per_epoch()) {
    fail<ConfigError>("resident.source", "cannot start at epoch {}, step {}; an epoch has {} steps", position_.epoch,
                      position_.step, images_->steps_per_epoch());
  }
  if (!loader_) {
    fill({});
    set_->used_here();
  }
}

ResidentSource::~ResidentSource() = default;

void ResidentSource::fill(const std::stop_token& stopping) {
  const device::Backend& backend = device::backend_for(device_);
  const augment::ImageShape shape = images_->shape();
  const std::int64_t free = backend.memory(device_).free;
  const auto room = static_cast<std::int64_t>(kShare * static_cast<double>(free));
  if (free >= 0 && shape.bytes() > room) {
    fail<DeviceError>("resident.source",
                      "{} images need {} bytes, but only {} bytes of {} may be used for them; set resident=off",
                      shape.images, shape.bytes(), room, device_.str());
  }
  set_.emplace(shape, device_, backend.make_copy_stream(device_));
  filled_ = set_->fill(*images_, stopping);
}

// Runs on the thread that fills the set; an exception there would end the process.
void ResidentSource::remark(const std::exception& error) const {
  if (!remarks_) {
    return;
  }
  try {
    remarks_(fmt::format("training images are not kept on the device, the loader is used instead: {}", error.what()));
  } catch (const std::exception&) {  // no memory for the message; the loader continues anyway
  }
}

// Errors of the filler are reasons to stay with the loader, which has already reported unreadable images.
void ResidentSource::start_filler() {
  try {
    filler_ = start_thread("resident.source", "copies images to the device", [this](const std::stop_token& stopping) {
      try {
        fill(stopping);
      } catch (const std::exception& error) {
        set_.reset();
        remark(error);
      }
    });
  } catch (const std::exception& error) {  // tried again at the end of the next epoch
    remark(error);
  }
}

// May be called again if it throws.
void ResidentSource::epoch_ended() {
  if (images_->steps_per_epoch() > 0 && filled_) {
    if (filler_.joinable()) {
      filler_.join();
    }
    set_->used_here();
    const std::lock_guard lock(mutex_);
    left_ = loader_->figures();
    if (left_) {
      left_->stages.clear();
    }
    loader_.reset();
  } else if (images_->steps_per_epoch() > 0 && !filler_.joinable()) {
    start_filler();
  }
  position_ = {position_.epoch + 1, 0};
}

core::Batch ResidentSource::make_batch() {
  if (taken_ == chunk_.batches()) {
    if (!rows_) {
      rows_.emplace(images_, position_, device::backend_for(device_).make_copy_stream(device_));
    }
    ResidentChunk next = rows_->next();
    chunk_ = std::move(next);
    taken_ = 0;
  }
  const std::int64_t first = chunk_.begins[static_cast<std::size_t>(taken_)],
                     last = chunk_.begins[static_cast<std::size_t>(taken_) + 1];
  const auto from = chunk_.indices.begin();
  core::Batch batch(position_, std::vector<std::int64_t>(from + first, from + last));
  batch.set("image", set_->make_batch(chunk_.windows.narrow(0, first, last - first)));
  batch.set("target", chunk_.targets.narrow(0, first, last - first));
  ++taken_;  // only now, so that a batch without memory is made again
  return batch;
}

std::optional<core::Batch> ResidentSource::next() {
  if (loader_) {
    std::optional<core::Batch> batch;
    if (!ending_) {
      batch = loader_->next();
      ending_ = !batch;
    }
    if (ending_) {
      epoch_ended();
      ending_ = false;
    }
    return batch;
  }
  if (position_.step == images_->steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  const Stopwatch watch;
  core::Batch batch = make_batch();
  ++position_.step;
  rows_made_ += batch.size();
  wait_seconds_ = wait_seconds_ + watch.seconds();
  return batch;
}

std::optional<core::SourceFigures> ResidentSource::figures() const {
  const std::lock_guard lock(mutex_);
  if (loader_) {
    return loader_->figures();
  }
  if (!left_) {
    return std::nullopt;
  }
  core::SourceFigures figures = *left_;
  figures.wall_seconds = since_.seconds();
  figures.wait_seconds += wait_seconds_;
  figures.samples += rows_made_;
  figures.threads = 0;
  return figures;
}

}  // namespace stoker::resident

// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/start_thread.h"

namespace stoker::resident {

ResidentRows::ResidentRows(std::shared_ptr<const augment::ResidentImages> images, core::Position start,
                           std::unique_ptr<device::CopyStream> stream)
    : images_(std::move(images)), stream_(std::move(stream)), position_(start), ready_(1) {
  if (stream_) {
    thread_ = start_thread("resident.rows", "computes the rows of batches", [this] { run(); });
  }
}

ResidentRows::~ResidentRows() {
  ready_.close();
  go_on_.release();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ResidentRows::run() {
  while (true) {
    ResidentChunk chunk;  // allocates nothing: it may have to carry an out-of-memory error
    try {
      chunk = make();
    } catch (...) {
      chunk.error = std::current_exception();
    }
    const bool failed = chunk.error != nullptr;
    if (!ready_.push(std::move(chunk))) {
      return;
    }
    if (failed) {
      go_on_.acquire();
    }
  }
}

ResidentChunk ResidentRows::make() {
  ResidentChunk chunk;
  core::Position at = position_;
  if (at.step == images_->steps_per_epoch()) {
    at = {at.epoch + 1, 0};
  }
  chunk.first = at;
  chunk.begins = {0};
  augment::WindowRows rows;
  do {
    images_->add_rows(at.epoch, at.step++, rows);
    chunk.begins.push_back(static_cast<std::int64_t>(rows.indices.size()));
  } while (chunk.begins.back() < wanted_ && at.step < images_->steps_per_epoch());
  send(rows, chunk);
  chunk.indices = std::move(rows.indices);
  wanted_ = std::min(std::max(2 * wanted_, 2 * chunk.begins.back()), kMostRows);
  position_ = at;
  return chunk;
}

void ResidentRows::send(const augment::WindowRows& rows, ResidentChunk& chunk) {
  const auto count = static_cast<std::int64_t>(rows.windows.size());
  const auto host = [&](const void* from, at::IntArrayRef sizes, at::ScalarType type) {
    at::Tensor values = stream_ ? stream_->host(sizes, type) : at::empty(sizes, type);
    if (count > 0) {
      std::memcpy(values.mutable_data_ptr(), from, values.nbytes());
    }
    return stream_ ? stream_->copy(values) : values;
  };
  chunk.windows = host(rows.windows.data(), {count, augment::WindowDraw::kWords}, at::kInt);
  chunk.targets = host(rows.targets.data(), {count}, at::kLong);
  if (stream_) {
    chunk.copied = stream_->mark(/*timing=*/false);
  }
}

ResidentChunk ResidentRows::next() {
  if (!stream_) {
    return make();
  }
  if (std::exchange(failed_, false)) {
    go_on_.release();
  }
  if (!taken_) {
    taken_ = ready_.pop();
  }
  if (taken_->error) {
    failed_ = true;
    const std::exception_ptr error = std::exchange(taken_, std::nullopt)->error;
    std::rethrow_exception(error);
  }
  stream_->await(*taken_->copied);  // if these throw, the next call tries them again
  stream_->used_here(taken_->windows);
  stream_->used_here(taken_->targets);
  return *std::exchange(taken_, std::nullopt);
}

}  // namespace stoker::resident

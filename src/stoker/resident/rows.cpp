// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::resident {

ResidentRows::ResidentRows(std::shared_ptr<const augment::ResidentImages> images, core::Position start,
                           std::unique_ptr<device::CopyStream> stream)
    : images_(std::move(images)), stream_(std::move(stream)), position_(start), ready_(1) {
  if (stream_) {
    thread_ = std::jthread([this] { run(); });
  }
}

ResidentRows::~ResidentRows() {
  ready_.close();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ResidentRows::run() {
  bool failed = false;
  while (!failed) {
    ResidentChunk chunk;  // allocates nothing: it may have to carry an out-of-memory error
    try {
      chunk = make();
    } catch (...) {
      chunk.error = std::current_exception();
      failed = true;
    }
    if (!ready_.push(std::move(chunk))) {
      return;
    }
  }
  ready_.close();
}

ResidentChunk ResidentRows::make() {
  ResidentChunk chunk;
  if (position_.step == images_->steps_per_epoch()) {
    position_ = {position_.epoch + 1, 0};
  }
  chunk.first = position_;
  chunk.begins = {0};
  augment::WindowRows rows;
  do {
    images_->add_rows(position_.epoch, position_.step++, rows);
    chunk.begins.push_back(static_cast<std::int64_t>(rows.indices.size()));
  } while (chunk.begins.back() < wanted_ && position_.step < images_->steps_per_epoch());
  wanted_ = std::min(std::max(2 * wanted_, 2 * chunk.begins.back()), kMostRows);
  send(rows, chunk);
  chunk.indices = std::move(rows.indices);
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
  std::optional<ResidentChunk> chunk = ready_.pop();
  if (!chunk) {
    fail<ConfigError>("resident.rows", "next() was called again after an error");
  }
  if (chunk->error) {
    std::rethrow_exception(chunk->error);
  }
  stream_->await(*chunk->copied);
  stream_->used_here(chunk->windows);
  stream_->used_here(chunk->targets);
  return std::move(*chunk);
}

}  // namespace stoker::resident

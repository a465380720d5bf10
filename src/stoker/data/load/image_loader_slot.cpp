// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/image_loader_slot.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "stoker/augment/image.h"
#include "stoker/base/error.h"

namespace stoker::data {
namespace {

constexpr std::size_t kLine = 64;  // bytes; alignment of fields

std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

std::size_t ImageSlotShape::row_bytes() const {
  return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
}

std::size_t ImageSlotShape::labels_at() const {
  return rounded(static_cast<std::size_t>(rows) * row_bytes() + augment::kSlack);
}

std::size_t ImageSlotShape::mixed_at() const {
  return rounded(labels_at() + static_cast<std::size_t>(rows) * sizeof(std::int64_t));
}

std::size_t ImageSlotShape::shares_at() const {
  return rounded(mixed_at() + (mixed ? static_cast<std::size_t>(rows) * sizeof(std::int64_t) : 0));
}

std::size_t ImageSlotShape::bytes() const {
  return shares_at() + (mixed ? static_cast<std::size_t>(rows) * sizeof(float) : 0);
}

void ImageSlot::begin(const ImageSlotShape& shape, SlotRing& ring) {
  if (static_cast<std::int64_t>(indices.size()) > shape.rows) {
    fail<ConfigError>("data.loader", "the order gives a batch of {} rows, but there is only room for {}",
                      indices.size(), shape.rows);
  }
  shape_ = shape;
  if (!memory_) {
    memory_ = ring.take();
  }
  labels = reinterpret_cast<std::int64_t*>(memory_.get() + shape.labels_at());
  mixed = reinterpret_cast<std::int64_t*>(memory_.get() + shape.mixed_at());
  shares = reinterpret_cast<float*>(memory_.get() + shape.shares_at());
  bad.clear();
  bad.resize(indices.size());
}

std::span<std::uint8_t> ImageSlot::row(std::size_t row) const {
  const std::size_t bytes = shape_.row_bytes();
  return {reinterpret_cast<std::uint8_t*>(memory_.get()) + row * bytes, bytes};
}

augment::Pixels ImageSlot::pixels() const {
  return {reinterpret_cast<std::uint8_t*>(memory_.get()), shape_.width, shape_.height, shape_.channels};
}

void ImageSlot::put_stand_ins() {
  std::size_t kept = 0;
  for (std::size_t from = 0; from < indices.size(); ++from) {
    if (bad[from] && bad[from]->stand_in < 0) {
      continue;
    }
    if (bad[from]) {
      indices[from] = bad[from]->stand_in;
    }
    if (kept < from) {
      std::ranges::copy(row(from), row(kept).begin());
      labels[kept] = labels[from];
      indices[kept] = indices[from];
      if (shape_.mixed) {
        mixed[kept] = mixed[from];
        shares[kept] = shares[from];
      }
    }
    ++kept;
  }
  if (kept == 0 && !indices.empty() && global_size == 0) {  // other ranks may have readable rows
    fail<DataError>("data.loader", "all {} samples of epoch {}, step {} are unreadable; the first: {}", indices.size(),
                    position.epoch, position.step, bad.front()->sample.reason);
  }
  indices.resize(kept);
}

core::Batch ImageSlot::finish() {
  core::Batch batch(position, indices);
  if (global_size > 0) {
    batch.set_part(first_row, global_size);
  }
  const auto rows = static_cast<std::int64_t>(indices.size());
  // Uses the slot's storage. from_blob() with a deleter would end the process without memory: it allocates in a
  // function that must not throw.
  const auto field = [&](void* at, at::IntArrayRef sizes, at::ScalarType type) {
    using Owner = std::shared_ptr<std::byte>;
    const auto let_go = [](void* owner) { delete static_cast<Owner*>(owner); };
    at::TensorMaker maker = at::for_blob(at, sizes);
    return maker.options(at::TensorOptions().dtype(type)).context(new Owner(memory_), let_go).make_tensor();
  };
  batch.set("image", field(memory_.get(), {rows, shape_.height, shape_.width, shape_.channels}, at::kByte));
  batch.set("target", field(labels, {rows}, at::kLong));
  if (shape_.mixed) {
    batch.set("target_mixed", field(mixed, {rows}, at::kLong));
    batch.set("share", field(shares, {rows}, at::kFloat));
  }
  memory_.reset();
  return batch;
}

}  // namespace stoker::data

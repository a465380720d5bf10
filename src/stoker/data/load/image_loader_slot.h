// SPDX-License-Identifier: Apache-2.0
// A batch of images while ImageLoader fills it: its fields lie one after the other in memory of a SlotRing, and the
// tensors of the finished batch are views of that memory. Rows may be filled by several threads, one a row; all else is
// the consumer's thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stoker/augment/pixels.h"
#include "stoker/core/bad_sample.h"
#include "stoker/core/batch.h"
#include "stoker/data/order/block_mixer.h"

namespace stoker::data {

// What a slot has room for, and where: fields begin at multiples of 64 bytes.
struct ImageSlotShape {
  std::int64_t rows = 0;  // at most
  int height = 0, width = 0, channels = 0;
  bool mixed = false;  // with the fields of MixUp and CutMix

  [[nodiscard]] std::size_t row_bytes() const;
  [[nodiscard]] std::size_t labels_at() const;
  [[nodiscard]] std::size_t mixed_at() const;
  [[nodiscard]] std::size_t shares_at() const;
  [[nodiscard]] std::size_t bytes() const;  // of it all
};

struct ImageSlot {
  core::Position position;
  std::vector<std::int64_t> indices;       // of each row, in the split's source
  std::optional<std::int64_t> first_draw;  // as BatchOrder's
  // A row that could not be had, and the index of what stands in for it; -1: nothing does.
  struct Bad {
    core::BadSample sample;
    std::int64_t stand_in = -1;
  };
  std::vector<std::unique_ptr<Bad>> bad;  // of each row; nearly always null
  BlockMixer mixer;
  std::int64_t *labels = nullptr, *mixed = nullptr;  // of each row; mixed: with shape.mixed
  float* shares = nullptr;                           // likewise

  // A batch begins, of as many rows as there are indices. ConfigError if they do not fit.
  void begin(const ImageSlotShape& shape, std::shared_ptr<std::byte> memory);
  // The pixels of a row, HWC, and all rows as images.
  [[nodiscard]] std::span<std::uint8_t> row(std::size_t row) const;
  [[nodiscard]] augment::Pixels pixels() const;
  // What stands in takes its places in indices, which the threads no longer look at; good rows move up to where
  // left-out ones were. DataError if none is good.
  void settle_bad();
  // The finished batch, as ImageLoader hands it out. The slot has no memory from here on.
  [[nodiscard]] core::Batch finish();

 private:
  ImageSlotShape shape_;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// A batch of images while ImageLoader fills it. Its fields are stored one after the other in memory of a SlotRing; the
// tensors of the finished batch are views of that memory. Several threads may fill rows, one thread per row; everything
// else happens on the consumer's thread.
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
#include "stoker/data/load/slot_ring.h"
#include "stoker/data/order/block_mixer.h"

namespace stoker::data {

// Capacity and layout of a slot: fields begin at multiples of 64 bytes.
struct ImageSlotShape {
  std::int64_t rows = 0;  // maximum
  int height = 0, width = 0, channels = 0;
  bool mixed = false;  // includes the fields of MixUp and CutMix

  [[nodiscard]] std::size_t row_bytes() const;
  [[nodiscard]] std::size_t labels_at() const;
  [[nodiscard]] std::size_t mixed_at() const;
  [[nodiscard]] std::size_t shares_at() const;
  [[nodiscard]] std::size_t bytes() const;  // in total
};

struct ImageSlot {
  core::Position position;
  std::int64_t first_row = 0, global_size = 0;  // if this is a rank's part of a global batch; size 0: it is not
  std::vector<std::int64_t> indices;            // per row, into the split's source
  std::optional<std::int64_t> first_draw;       // as in BatchOrder
  // A row that could not be read, and the index of its replacement; -1: none.
  struct Bad {
    core::BadSample sample;
    std::int64_t stand_in = -1;
  };
  std::vector<std::unique_ptr<Bad>> bad;  // per row; nearly always null
  std::size_t reported = 0;               // rows whose entry in `bad` is in the ledger, also if the batch is made again
  BlockMixer mixer;
  std::int64_t *labels = nullptr, *mixed = nullptr;  // per row; mixed: only with shape.mixed
  float* shares = nullptr;                           // per row, with shape.mixed

  // Begins a batch with one row per index, or begins it again. Takes memory from the ring if it has none. ConfigError
  // if the rows do not fit.
  void begin(const ImageSlotShape& shape, SlotRing& ring);
  // The pixels of one row, HWC, and of all rows.
  [[nodiscard]] std::span<std::uint8_t> row(std::size_t row) const;
  [[nodiscard]] augment::Pixels pixels() const;
  // Writes replacements into indices, which the threads no longer read, and closes the gaps of skipped rows. DataError
  // if no row is good.
  void put_stand_ins();
  // The finished batch, as ImageLoader hands it out. The slot gives up its memory, unless this throws.
  [[nodiscard]] core::Batch finish();

 private:
  ImageSlotShape shape_;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace stoker::data

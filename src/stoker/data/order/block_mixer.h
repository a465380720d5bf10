// SPDX-License-Identifier: Apache-2.0
// Mixes blocks of rows of one batch (MixUp, CutMix) while threads read them: the thread that reads the last row of a
// block mixes it. Each slot of ImageLoader has one. The consumer calls begin() and pair(), any thread row_read().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/augment/mix.h"
#include "stoker/augment/pixels.h"

namespace stoker::data {

class BlockMixer {
 public:
  // For a batch of `rows` rows in whole blocks; 0: no mixing. key.block: block of the first row. Reuses its memory.
  void begin(const augment::Mix& mix, int width, int height, augment::MixKey key, std::int64_t rows);
  // Row `row` is in place, or, if not good, will never be: then its block stays unmixed. batch: first row of the batch.
  void row_read(std::int64_t row, bool good, augment::Pixels batch, std::vector<std::uint8_t>& scratch);
  // After all rows are read: sets for each row the target of its partner and the share of its own pixels; its own
  // target and 1 if it was not mixed. targets, mixed, shares: one per row.
  void pair(const std::int64_t* targets, std::int64_t rows, std::int64_t* mixed, float* shares) const;

 private:
  struct Block {
    augment::BlockDraw drawn;
    std::atomic<int> unread = 0;
    std::atomic<bool> gap = false;
  };
  std::unique_ptr<Block[]> blocks_;
  std::int64_t capacity_ = 0, count_ = 0, rows_each_ = 1;
};

}  // namespace stoker::data

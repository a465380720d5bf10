// SPDX-License-Identifier: Apache-2.0
// The blocks of one batch within which MixUp and CutMix pair rows, while threads read them: whoever reads a block's
// last row mixes it. A slot of ImageLoader holds one. begin() and pair() are the consumer's, row_read() is any
// thread's.
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
  // For a batch of `rows` whole blocks, or 0: nothing is mixed. key.block: of its first row. Keeps its memory.
  void begin(const augment::Mix& mix, int width, int height, augment::MixKey key, std::int64_t rows);
  // Row `row` lies in its place, or, not good, never will: then its block stays unmixed. batch: the batch's first row.
  void row_read(std::int64_t row, bool good, augment::Pixels batch, std::vector<std::uint8_t>& scratch);
  // Once all rows are read: each row's partner's target and its share of its own pixels, its own and 1 where nothing
  // was mixed. targets, mixed, shares: one for each of `rows` rows.
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

// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/block_mixer.h"

#include <algorithm>

namespace stoker::data {

void BlockMixer::begin(const augment::Mix& mix, int width, int height, augment::MixKey key, std::int64_t rows) {
  rows_each_ = mix.block;
  count_ = rows / rows_each_;
  if (count_ > capacity_) {
    blocks_ = std::make_unique<Block[]>(static_cast<std::size_t>(count_));
    capacity_ = count_;
  }
  for (std::int64_t i = 0; i < count_; ++i, ++key.block) {
    Block& block = blocks_[static_cast<std::size_t>(i)];
    block.drawn = augment::draw(mix, width, height, key);
    block.gap.store(false, std::memory_order_relaxed);  // published to the threads together with the rows
    block.unread.store(mix.block, std::memory_order_relaxed);
  }
}

void BlockMixer::row_read(std::int64_t row, bool good, augment::Pixels batch, std::vector<std::uint8_t>& scratch) {
  if (count_ == 0) {
    return;
  }
  const std::int64_t which = row / rows_each_;
  Block& block = blocks_[static_cast<std::size_t>(which)];
  if (!good) {
    block.gap.store(true, std::memory_order_relaxed);
  }
  if (block.unread.fetch_sub(1, std::memory_order_acq_rel) == 1 && !block.gap.load(std::memory_order_relaxed)) {
    batch.data += which * rows_each_ * batch.bytes();
    augment::execute(block.drawn, batch, scratch);
  }
}

void BlockMixer::pair(const std::int64_t* targets, std::int64_t rows, std::int64_t* mixed, float* shares) const {
  std::copy_n(targets, rows, mixed);
  std::fill_n(shares, rows, 1.0F);
  for (std::int64_t i = 0; i < count_; ++i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    if (block.gap.load(std::memory_order_relaxed)) {
      continue;
    }
    const std::int64_t first = i * rows_each_;
    for (std::int64_t row = 0; row < rows_each_; ++row) {
      mixed[first + row] = targets[first + block.drawn.partner[static_cast<std::size_t>(row)]];
      shares[first + row] = block.drawn.own_share();
    }
  }
}

}  // namespace stoker::data

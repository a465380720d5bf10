// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/bit_set.h"

#include <bit>

namespace stoker {
namespace {

// std::popcount() would be a function call, since the code must run on any processor: the sums of 2, 4 and 8 bits in
// parallel (Warren, "Hacker's Delight", 2013, 5-1).
int count_ones(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<int>((bits * 0x0101010101010101) >> 56);
}

}  // namespace

BitSet::BitSet(std::int64_t size)
    : size_(size),
      words_((static_cast<std::size_t>(size) + kWord * kBlock - 1) / (kWord * kBlock) * kBlock),
      before_(1) {}

void BitSet::seal() {
  before_.resize(words_.size() / kBlock + 1);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (i % kBlock == 0) {
      before_[i / kBlock] = count;
    }
    count += count_ones(words_[i]);
  }
  before_.back() = count;
}

std::int64_t BitSet::select(std::int64_t k, bool inside) const {
  const auto before = [&](std::size_t block) {
    return inside ? before_[block] : static_cast<std::int64_t>(block * kBlock * kWord) - before_[block];
  };
  std::size_t low = 0, high = before_.size() - 1;  // the block is in [low, high)
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (before(middle) <= k ? low : high) = middle;
  }
  auto left = static_cast<int>(k - before(low));
  for (std::size_t i = low * kBlock;; ++i) {
    std::uint64_t word = inside ? words_[i] : ~words_[i];
    const int here = count_ones(word);
    if (left < here) {
      for (; left > 0; --left) {
        word &= word - 1;  // without its lowest bit
      }
      return static_cast<std::int64_t>(i * kWord) + std::countr_zero(word);
    }
    left -= here;
  }
}

}  // namespace stoker

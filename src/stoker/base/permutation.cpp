// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/permutation.h"

#include <bit>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker {
namespace {

constexpr int kRounds = 6;  // four make a strong permutation (Luby and Rackoff); two more for small domains

}  // namespace

Permutation::Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t size)
    : size_(size),
      seed_low_(static_cast<std::uint32_t>(seed)),
      seed_high_(static_cast<std::uint32_t>(seed >> 32)),
      epoch_(epoch),
      half_bits_((std::bit_width(size > 1 ? size - 1 : 1) + 1) / 2) {
  if (size == 0 || size > (std::uint64_t{1} << 62)) {
    fail<ConfigError>("base.permutation", "size must be in 1 ... 2^62, got {}", size);
  }
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t tweak = (static_cast<std::uint32_t>(RandomOp::kOrder) << 16) | round;
    const PhiloxBlock mixed =
        philox4x32({static_cast<std::uint32_t>(right), tweak, epoch_, 0}, {seed_low_, seed_high_});
    const std::uint64_t next = left ^ (mixed[0] & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  do {
    position = encrypt(position);
  } while (position >= size_);
  return position;
}

}  // namespace stoker

// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/permutation.h"

#include <array>
#include <bit>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"

namespace stoker {

Permutation::Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t size)
    : size_(size),
      half_bits_((std::bit_width(size > 1 ? size - 1 : 1) + 1) / 2),
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), epoch,
           static_cast<std::uint32_t>((std::uint64_t{1} << half_bits_) - 1)} {
  if (size == 0 || size > (std::uint64_t{1} << 62)) {
    fail<ConfigError>("base.permutation", "size must be in 1 ... 2^62, got {}", size);
  }
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & key_.mask;
  for (int round = 0; round < kFeistelRounds; ++round) {
    const PhiloxBlock mixed = philox4x32({static_cast<std::uint32_t>(right), FeistelKey::tweak(round), key_.epoch, 0},
                                         {key_.seed_low, key_.seed_high});
    const std::uint64_t next = left ^ (mixed[0] & key_.mask);
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

void Permutation::fill(std::uint64_t first, std::span<std::int64_t> out) const {
  constexpr std::size_t kIdle = ~std::size_t{0};
  std::array<std::uint64_t, kFeistelLanes> left{}, right{};
  std::array<std::size_t, kFeistelLanes> place;  // position in out of each lane's value
  std::size_t next = 0, working = 0;
  const auto begin = [&](std::size_t lane) {
    place[lane] = next < out.size() ? next++ : kIdle;
    if (place[lane] != kIdle) {
      const std::uint64_t value = first + place[lane];
      left[lane] = value >> half_bits_;
      right[lane] = value & key_.mask;
      ++working;
    }
  };
  for (std::size_t lane = 0; lane < kFeistelLanes; ++lane) {
    begin(lane);
  }
  while (working > 0) {  // a lane walks its cycle until the value is below size, then takes the next position
    feistel_rounds(key_, left.data(), right.data());
    for (std::size_t lane = 0; lane < kFeistelLanes; ++lane) {
      const std::uint64_t value = (left[lane] << half_bits_) | right[lane];
      if (place[lane] != kIdle && value < size_) {
        out[place[lane]] = static_cast<std::int64_t>(value);
        --working;
        begin(lane);
      }
    }
  }
}

}  // namespace stoker

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

// As encrypt() of one value. Philox is written out, as its counters are lanes here.
void Permutation::encrypt(Lanes& left, Lanes& right) const {
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << half_bits_) - 1);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    Lanes c0 = right, c1{}, c2{}, c3{};
    c1.fill((static_cast<std::uint32_t>(RandomOp::kOrder) << 16) | round);
    c2.fill(epoch_);
    std::uint32_t key0 = seed_low_, key1 = seed_high_;
    for (int i = 0; i < 10; ++i) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c0[lane];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c2[lane];
        c0[lane] = static_cast<std::uint32_t>(product1 >> 32) ^ c1[lane] ^ key0;
        c1[lane] = static_cast<std::uint32_t>(product1);
        c2[lane] = static_cast<std::uint32_t>(product0 >> 32) ^ c3[lane] ^ key1;
        c3[lane] = static_cast<std::uint32_t>(product0);
      }
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t next = left[lane] ^ (c0[lane] & mask);
      left[lane] = right[lane];
      right[lane] = next;
    }
  }
}

void Permutation::fill(std::uint64_t first, std::span<std::int64_t> out) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  constexpr std::size_t kIdle = ~std::size_t{0};
  Lanes left{}, right{};
  std::array<std::size_t, kLanes> place;  // in out, that a lane works for
  std::size_t next = 0, working = 0;
  const auto begin = [&](std::size_t lane) {
    place[lane] = next < out.size() ? next++ : kIdle;
    if (place[lane] != kIdle) {
      const std::uint64_t value = first + place[lane];
      left[lane] = static_cast<std::uint32_t>(value >> half_bits_);
      right[lane] = static_cast<std::uint32_t>(value & mask);
      ++working;
    }
  };
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    begin(lane);
  }
  while (working > 0) {  // a lane walks its cycle until it lands, then takes the next position
    encrypt(left, right);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = (std::uint64_t{left[lane]} << half_bits_) | right[lane];
      if (place[lane] != kIdle && value < size_) {
        out[place[lane]] = static_cast<std::int64_t>(value);
        --working;
        begin(lane);
      }
    }
  }
}

}  // namespace stoker

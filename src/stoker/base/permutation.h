// SPDX-License-Identifier: Apache-2.0
// The order of samples in an epoch: a pseudo-random permutation of 0 ... n-1, computed index by index in constant time
// and memory, so a run resumes anywhere without a stored shuffle. Used by the orders of samples in data. Thread-safe:
// immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

// A balanced Feistel network over the smallest even number of bits that covers n, walked along its cycle until it lands
// below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Round function: Philox4x32-10.
class Permutation {
 public:
  // size: number of samples, at least 1, at most 2^62.
  Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t size);

  // Where position (0 ... size-1) leads; a bijection.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  // out[i] = (*this)(first + i), several at a time.
  void fill(std::uint64_t first, std::span<std::int64_t> out) const;

 private:
  // Values side by side, for vector instructions; each is a number of two halves.
  static constexpr std::size_t kLanes = 8;
  using Lanes = std::array<std::uint32_t, kLanes>;
  void encrypt(Lanes& left, Lanes& right) const;
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint32_t seed_low_, seed_high_, epoch_;
  int half_bits_;
};

}  // namespace stoker

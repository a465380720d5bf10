// SPDX-License-Identifier: Apache-2.0
// The order of samples in an epoch: a pseudo-random permutation of 0 ... n-1, computed index by index in constant time
// and memory, so a run resumes anywhere without a stored shuffle. Used by the sample orders of data. Thread-safe:
// immutable.
#pragma once

#include <cstdint>
#include <span>

#include "stoker/base/feistel.h"

namespace stoker {

// A balanced Feistel network over the smallest even number of bits that covers n, walked along its cycle until the
// value is below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Round function: Philox4x32-10.
class Permutation {
 public:
  // size: number of samples, at least 1, at most 2^62.
  Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t size);

  // The image of position (0 ... size-1); a bijection.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  // out[i] = (*this)(first + i), several at a time.
  void fill(std::uint64_t first, std::span<std::int64_t> out) const;

 private:
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  int half_bits_;
  FeistelKey key_;
};

}  // namespace stoker

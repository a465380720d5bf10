// SPDX-License-Identifier: Apache-2.0
// The rounds of the Feistel network that orders samples, for many values at a time with the vector instructions of the
// processor. Used by Permutation, which has the same for one value. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

inline constexpr int kFeistelRounds =
    6;  // four make a strong permutation (Luby and Rackoff); two more for small domains

// The key of the round function, Philox4x32-10.
struct FeistelKey {
  std::uint32_t seed_low = 0, seed_high = 0, epoch = 0;
  std::uint32_t mask = 0;  // of a half, at most 2^31 - 1
  [[nodiscard]] static std::uint32_t tweak(int round);
};

// Values per call.
inline constexpr std::size_t kFeistelLanes = 32;

// Replaces the halves of kFeistelLanes values, each in a separate number, by the halves of their images.
void feistel_rounds(const FeistelKey& key, std::uint64_t* left, std::uint64_t* right);

}  // namespace stoker

// SPDX-License-Identifier: Apache-2.0
// The key of a sample's random numbers: every operation draws its parameters with this key and its own RandomOp. Used
// by every draw() of this room. A plain value.
#pragma once

#include <cstdint>

#include "stoker/base/counter_rng.h"

namespace stoker::augment {

// Identifies a draw of a sample.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sample = 0;      // index in its source
  std::uint32_t occurrence = 0;  // distinguishes copies of a sample in one epoch; 0 if it occurs once

  [[nodiscard]] CounterRng random(RandomOp op) const { return {seed, epoch, sample, op, occurrence}; }
};

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// The grey value of a colour, as used by the colour operations colour_jitter and grey. Thread-safe: no
// state.
#pragma once

#include <cstdint>

namespace stoker::augment {

// floor(0.2989 r + 0.587 g + 0.114 b): weights and truncation of torchvision, so white becomes 254.
// Exact for every colour: rounding up the weights to 22 bits adds less than the distance of a sum from the next whole
// number (1/10000), and the sum stays below 2^31.
constexpr std::int32_t luma(std::int32_t r, std::int32_t g, std::int32_t b) {
  return (r * 1253678 + g * 2462057 + b * 478151) >> 22;
}

}  // namespace stoker::augment

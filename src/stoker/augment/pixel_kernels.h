// SPDX-License-Identifier: Apache-2.0
// Loops over pixels: the two passes of a resize (across each source row, then down the columns), and rows as they are.
// Once plain, once with the vector instructions that the processor has; both compute the same integers. Used by resize
// and image_policy. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/augment/resize.h"

namespace stoker::augment {

inline constexpr int kWeightBits = 32 - 8 - 2;  // 8 bits of pixel, 2 of headroom: Pillow's PRECISION_BITS
inline constexpr int kTapGroup = 4;             // what the number of taps and of outputs is rounded up to

struct PixelKernels {
  // Scales `count` rows of `channels` channels; in[y] points to row y's first byte, kSlack bytes beyond its last may be
  // read. Row y of the result begins at out + y * stride; kSlack bytes beyond its end may be written.
  void (*scale_rows)(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across,
                     std::uint8_t* out, std::ptrdiff_t stride);
  // For each output of `down` the weighted sum of rows of `bytes` bytes, `stride` apart, with kSlack readable bytes
  // beyond each; down.first counts from `rows`. Just `bytes` are written to each of out's rows.
  void (*mix_rows)(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
                   std::uint8_t* out, std::ptrdiff_t out_stride);
  // The source's rows as they are, or from right to left, each within an output row of `stride` bytes: `before` black
  // ones in front of it, and as many behind as are left. Both count whole pixels.
  void (*place_rows)(ImageView source, bool mirrored, std::ptrdiff_t before, std::uint8_t* out, std::ptrdiff_t stride);
};

[[nodiscard]] const PixelKernels& plain_kernels();
[[nodiscard]] const PixelKernels& vector_kernels();

}  // namespace stoker::augment

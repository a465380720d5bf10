// SPDX-License-Identifier: Apache-2.0
// The two passes of a resize: across each source row, then down the columns. Once plain, once with the vector
// instructions that the processor has; both compute the same integers. Used by resize alone. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/augment/resize.h"

namespace stoker::augment {

inline constexpr int kWeightBits = 32 - 8 - 2;  // 8 bits of pixel, 2 of headroom: Pillow's PRECISION_BITS
inline constexpr int kTapGroup = 4;             // what the number of taps and of outputs is rounded up to
inline constexpr int kSlack = 64;               // bytes of room beyond the end of a row

struct ResizeKernels {
  // Scales `count` rows of `channels` channels; in[y] points to row y's first byte, kSlack bytes beyond its last may be
  // read. Row y of the result begins at out + y * stride; kSlack bytes beyond its end may be written.
  void (*scale_rows)(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across,
                     std::uint8_t* out, std::ptrdiff_t stride);
  // For each output of `down` the weighted sum of rows of `bytes` bytes, `stride` apart, with kSlack readable bytes
  // beyond each; down.first counts from `rows`. Just `bytes` are written to each of out's rows.
  void (*mix_rows)(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
                   std::uint8_t* out, std::ptrdiff_t out_stride);
};

[[nodiscard]] const ResizeKernels& plain_resize_kernels();
[[nodiscard]] const ResizeKernels& vector_resize_kernels();

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// Loops over pixels: the two passes of a resize (across each source row, then down the columns), and rows as they are.
// Once plain, and in families that use the vector instructions which the processor has. All families compute the same
// integers, so which one runs never changes a pixel. Used by resize and image_policy. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stoker/augment/resize.h"

namespace stoker::augment {

inline constexpr int kWeightBits = 32 - 8 - 2;  // 8 bits of pixel, 2 of headroom: Pillow's PRECISION_BITS
inline constexpr int kTapGroup = 4;             // what the number of taps and of outputs is rounded up to

// An image that rows are placed in, without gaps: where it begins, and where in it the first of them does.
struct Placing {
  std::uint8_t* pixels = nullptr;
  std::ptrdiff_t stride = 0;  // bytes of a row
  int rows = 0;
  int above = 0;              // rows
  std::ptrdiff_t before = 0;  // bytes, of whole pixels

  [[nodiscard]] std::ptrdiff_t bytes() const { return stride * rows; }
  // Where the row of the source's row 0 begins.
  [[nodiscard]] std::uint8_t* first_row() const { return pixels + above * stride; }
};

struct PixelKernels {
  std::string_view name;
  // Brings the weights of an axis into the form that scale_rows and mix_rows of this family read. Each is called once
  // per axis, when its weights are there, and before the other two.
  void (*prepare_across)(AxisWeights& across, int channels);
  void (*prepare_down)(AxisWeights& down);
  // Scales `count` rows of `channels` channels; in[y] points to row y's first byte, kSlack bytes beyond its last may be
  // read. Row y of the result begins at out + y * stride; kSlack bytes beyond its end may be written.
  void (*scale_rows)(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across,
                     std::uint8_t* out, std::ptrdiff_t stride);
  // For each output of `down` the weighted sum of rows of `bytes` bytes, `stride` apart, with kSlack readable bytes
  // beyond each and kTapGroup - 1 readable rows beyond the last; down.first counts from `rows`. Just `bytes` are
  // written to each of out's rows.
  void (*mix_rows)(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
                   std::uint8_t* out, std::ptrdiff_t out_stride);
  // A whole image: black but for the source's rows, which lie in it as they are or from right to left.
  void (*place_rows)(ImageView source, bool mirrored, const Placing& out);
};

[[nodiscard]] const PixelKernels& plain_kernels();
// Highway's best family for this processor.
[[nodiscard]] const PixelKernels& vector_kernels();
// Dot products of four bytes (AVX-512 VNNI) and any order of 64 bytes (VBMI); null if the processor lacks either.
[[nodiscard]] const PixelKernels* quad_kernels();

// Every family that this processor can run, plain_kernels() first.
[[nodiscard]] std::span<const PixelKernels* const> runnable_kernels();
// The family that resizes a small image fastest on this processor. Measured at the first call, in about 0.2 ms.
[[nodiscard]] const PixelKernels& fastest_kernels();

}  // namespace stoker::augment

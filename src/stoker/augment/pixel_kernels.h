// SPDX-License-Identifier: Apache-2.0
// Loops over pixels: the two passes of a resize (along each source row, then down the columns), and copies of rows.
// There is a plain version and families with vector instructions. All families compute the same integers, so the choice
// never changes a pixel. Used by resize and image_policy. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stoker/augment/resize.h"

namespace stoker::augment {

inline constexpr int kWeightBits = 32 - 8 - 2;  // 8 bits of pixel, 2 of headroom: Pillow's PRECISION_BITS
inline constexpr int kTapGroup = 4;             // the numbers of taps and outputs are rounded up to a multiple of this

// A target image without gaps into which rows are placed: its start, and the place of the first row.
struct Placing {
  std::uint8_t* pixels = nullptr;
  std::ptrdiff_t stride = 0;  // bytes of a row
  int rows = 0;
  int above = 0;              // rows
  std::ptrdiff_t before = 0;  // bytes, of whole pixels

  [[nodiscard]] std::ptrdiff_t bytes() const { return stride * rows; }
  // Start of the row for source row 0.
  [[nodiscard]] std::uint8_t* first_row() const { return pixels + above * stride; }
};

struct PixelKernels {
  std::string_view name;
  // Converts the weights of an axis into the form for scale_rows and mix_rows of this family. Call once per axis after
  // its weights are set and before the other two.
  void (*prepare_across)(AxisWeights& across, int channels);
  void (*prepare_down)(AxisWeights& down);
  // Scales `count` rows of `channels` channels; in[y] points to the first byte of row y, and kSlack bytes after its end
  // may be read. Row y of the result begins at out + y * stride; kSlack bytes after its end may be written.
  void (*scale_rows)(const std::uint8_t* const* in, int count, int channels, const AxisWeights& across,
                     std::uint8_t* out, std::ptrdiff_t stride);
  // For each output of `down` the weighted sum of rows of `bytes` bytes, `stride` apart, with kSlack readable bytes
  // after each and kTapGroup - 1 readable rows after the last; down.first counts from `rows`. Writes exactly `bytes`
  // bytes to each row of out.
  void (*mix_rows)(const std::uint8_t* rows, std::ptrdiff_t stride, std::ptrdiff_t bytes, const AxisWeights& down,
                   std::uint8_t* out, std::ptrdiff_t out_stride);
  // A whole image: black except for the rows of the source, unchanged or mirrored.
  void (*place_rows)(ImageView source, bool mirrored, const Placing& out);
};

[[nodiscard]] const PixelKernels& plain_kernels();
// The best Highway family for this processor.
[[nodiscard]] const PixelKernels& vector_kernels();
// Dot products of four bytes (AVX-512 VNNI) and any order of 64 bytes (VBMI); null if the processor lacks either.
[[nodiscard]] const PixelKernels* quad_kernels();

// All families that this processor can run, plain_kernels() first.
[[nodiscard]] std::span<const PixelKernels* const> runnable_kernels();
// The family that resizes a small image fastest on this processor; measured at the first call in about 0.2 ms.
[[nodiscard]] const PixelKernels& fastest_kernels();

}  // namespace stoker::augment

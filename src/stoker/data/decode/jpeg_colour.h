// SPDX-License-Identifier: Apache-2.0
// From the planes of a baseline JPEG to pixels: chroma at half resolution is interpolated ("fancy upsampling" of
// libjpeg-turbo, bit-equal), YCbCr becomes RGB (JFIF 1.02). Used only by BaselineJpeg. Thread-safe: no state.
#pragma once

#include <cstdint>

namespace stoker::data {

// Rows may be read and written up to kRowSlack bytes beyond their end, and interpolation reads one byte before the
// first one.
inline constexpr int kRowSlack = 192;

struct ColourKernels {
  // Twice as wide: output 2i lies between inputs i - 1 and i, output 2i + 1 between i and i + 1.
  void (*widen)(const std::uint8_t* row, int width, std::uint8_t* out);
  // Twice as high: an output row between the nearer and the farther input row. bias: 1 if the farther row is above, 2
  // if it is below.
  void (*between)(const std::uint8_t* near, const std::uint8_t* far, int bias, int width, std::uint8_t* out);
  // Both at once.
  void (*widen_between)(const std::uint8_t* near, const std::uint8_t* far, int width, std::uint8_t* out);
  void (*to_rgb)(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int width,
                 std::uint8_t* rgb);
  void (*repeat)(const std::uint8_t* grey, int width, std::uint8_t* rgb);
};

// For this processor; null if it is none of those that BaselineJpeg is made for. width: of the input; of the output for
// colours.
[[nodiscard]] const ColourKernels* colour_kernels();

}  // namespace stoker::data

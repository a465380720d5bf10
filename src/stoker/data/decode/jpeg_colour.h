// SPDX-License-Identifier: Apache-2.0
// Lines of pixels from lines of samples of a baseline JPEG: chroma at half resolution is interpolated ("fancy
// upsampling" of libjpeg-turbo, bit-equal), and YCbCr becomes RGB (JFIF 1.02). Used only by BaselineJpeg. Thread-safe:
// no state.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::data {

// Bytes beyond the end of a line that may be read and written.
inline constexpr int kLineSlack = 192;

// One line of an image in colour. Columns count in pixels from the first sample of luma.
struct ColourLine {
  struct Chroma {
    const std::uint8_t* near = nullptr;
    const std::uint8_t* far = nullptr;  // the other line between which this one lies
  };
  const std::uint8_t* luma = nullptr;
  std::array<Chroma, 2> chroma;  // blue, red
  int left = 0, width = 0;       // columns
  bool half_across = false;      // chroma has half of the columns
  bool half_down = false;        // chroma has half of the lines
  bool below = false;            // the far line is below
};

struct ColourKernels {
  // room: for two lines of chroma, each of width + kLineSlack bytes.
  void (*to_rgb)(const ColourLine& line, std::uint8_t* room, std::uint8_t* rgb);
  void (*repeat)(const std::uint8_t* grey, int width, std::uint8_t* rgb);
};

// For this processor; null if it is none of those that BaselineJpeg is made for.
[[nodiscard]] const ColourKernels* colour_kernels();

}  // namespace stoker::data

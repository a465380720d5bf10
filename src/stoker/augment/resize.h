// SPDX-License-Identifier: Apache-2.0
// Antialiased resize in integer arithmetic, bilinear or bicubic: the 8-bit algorithm of Pillow
// (src/libImaging/Resample.c), so that results equal Pillow's bit for bit on every machine. Used by image_policy.
// Thread-safe if every thread has its own ResizeScratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::augment {

struct PixelKernels;

// The weights of pixels around a position; stretched by the scale if an image is made smaller.
enum class Interpolation {
  kBilinear,  // a triangle
  kBicubic,   // Keys 1981 with a = -0.5: goes below zero, so that edges stay sharper
};

// Radius of the filter in source pixels, without stretching.
[[nodiscard]] double reach_of(Interpolation interpolation);

// The part of the source to scale, in source pixels, fractions allowed: the box of Pillow (stored as float there). The
// filter may read source pixels just outside the box.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// One axis of a resize: for each output pixel the first source pixel and `taps` weights with 22 fractional bits. taps
// and the number of entries are multiples of four; entries beyond `outputs` repeat the last one with zero weights.
struct AxisWeights {
  int outputs = 0;
  int taps = 0;
  int begin = 0, end = 0;    // range of source pixels used by any output
  std::vector<int> first;    // [entries]
  std::vector<int> count;    // [entries], at most taps
  std::vector<int> weights;  // [entries * taps], zero beyond count

  // The weights in the form of vector_kernels().
  std::vector<std::uint32_t> low;   // [entries * taps / 2]: low 15 bits of two neighbouring weights, 16 bits each
  std::vector<std::uint32_t> high;  // the same for the upper bits, signed

  // The weights in the form of quad_kernels().
  struct LaneGroup {        // 16 values of a row that are computed together
    int begin = 0;          // byte of the source row where the first quad begins
    int quads = 0;          // number of quads of taps
    std::size_t table = 0;  // start of their tables in `tables`
  };
  std::vector<std::uint32_t> digits;  // [entries * taps]: for four taps the low, middle and high digits, then padding
  std::vector<LaneGroup> groups;      // horizontal axis; empty if the pixels of a group do not fit into a vector
  std::vector<std::uint8_t> tables;   // for each quad of a group: the bytes of the row that it uses, and their digits
};

// Memory that is reused between calls.
struct ResizeScratch {
  AxisWeights horizontal;
  AxisWeights vertical;
  std::vector<const std::uint8_t*> inputs;  // source rows
  std::vector<std::uint8_t> last_rows;      // a copy of the last rows, where reading beyond the end is not allowed
  std::vector<std::uint8_t> rows;           // after the horizontal pass
  std::vector<double> exact;                // weights of one output pixel
  const PixelKernels* kernels = nullptr;    // null: fastest_kernels(); others give the same pixels, slower
};

// Scales box of source to scaled_width x scaled_height and writes the window of the result to out; computes and reads
// nothing else. Rows have out_stride bytes, of which window.width * channels are used. mirrored: from right to left.
// The window must be inside the scaled image and the box inside the source; sizes at least 1, channels 1 ... 4; else
// ConfigError.
void resize(ImageView source, const Box& box, int scaled_width, int scaled_height, const Region& window, bool mirrored,
            std::uint8_t* out, std::ptrdiff_t out_stride, ResizeScratch& scratch,
            Interpolation interpolation = Interpolation::kBilinear);

}  // namespace stoker::augment

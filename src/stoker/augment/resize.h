// SPDX-License-Identifier: Apache-2.0
// Antialiased resize in integer arithmetic, bilinear or bicubic: the 8-bit algorithm of Pillow
// (src/libImaging/Resample.c), so that images come out as they do in Python, bit for bit, on every machine. Used by
// image_policy. Thread-safe as long as every thread has a ResizeScratch of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::augment {

struct PixelKernels;

// By what the pixels around a place are weighed, stretched by the scale where an image is made smaller.
enum class Interpolation {
  kBilinear,  // a triangle
  kBicubic,   // Keys 1981 with a = -0.5: goes below zero, so that edges stay sharper
};

// How far such a filter reaches, in pixels of the source where it is not stretched.
[[nodiscard]] double reach_of(Interpolation interpolation);

// What part of the source to scale, in source pixels, fractions allowed: Pillow's box (which it keeps as float).
// The filter may look at source pixels just outside the box.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// One axis of a resize: for each wanted output pixel the first source pixel and `taps` weights of 22 fractional bits.
// taps is a multiple of four, and so is the number of entries: those beyond `outputs` repeat the last without weights.
struct AxisWeights {
  int outputs = 0;
  int taps = 0;
  int begin = 0, end = 0;    // the source pixels that any output is made of
  std::vector<int> first;    // [entries]
  std::vector<int> count;    // [entries], at most taps
  std::vector<int> weights;  // [entries * taps], zero beyond count

  // What vector_kernels() make of the weights.
  std::vector<std::uint32_t> low;   // [entries * taps / 2]: low 15 bits of two neighbours, 16 bits each
  std::vector<std::uint32_t> high;  // the same of the bits above, signed

  // What quad_kernels() make of them.
  struct LaneGroup {        // 16 values of a row that are computed together
    int begin = 0;          // byte of the source row that the first of their quads is made of
    int quads = 0;          // of taps
    std::size_t table = 0;  // where theirs begin in `tables`
  };
  std::vector<std::uint32_t> digits;  // [entries * taps]: of four taps their low digits, middle and high ones; nothing
  std::vector<LaneGroup> groups;      // of the axis across; empty if the source pixels of one do not fit a vector
  std::vector<std::uint8_t> tables;   // of each quad of a group: which bytes of the row it takes, and their digits
};

// Memory that is kept between calls.
struct ResizeScratch {
  AxisWeights horizontal;
  AxisWeights vertical;
  std::vector<const std::uint8_t*> inputs;  // source rows
  std::vector<std::uint8_t> last_rows;      // a copy of those that nothing may be read beyond
  std::vector<std::uint8_t> rows;           // after the horizontal pass
  std::vector<double> exact;                // weights of one output pixel
  const PixelKernels* kernels = nullptr;    // null: fastest_kernels(); others compute the same pixels, slower
};

// Scales box of source to scaled_width x scaled_height and writes the window of the result to out, nothing else being
// computed or read: rows of out_stride bytes, window.width * channels of them used; mirrored: from right to left. The
// window must lie within the scaled image and the box within the source; every size at least 1, channels 1 ... 4;
// ConfigError otherwise.
void resize(ImageView source, const Box& box, int scaled_width, int scaled_height, const Region& window, bool mirrored,
            std::uint8_t* out, std::ptrdiff_t out_stride, ResizeScratch& scratch,
            Interpolation interpolation = Interpolation::kBilinear);

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// Antialiased bilinear resize in integer arithmetic: the 8-bit algorithm of Pillow (src/libImaging/Resample.c), so
// that pictures come out as they do in Python, bit for bit, on every machine. Used by image_policy.
// Thread-safe as long as every thread has a ResizeScratch of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/augment/image.h"

namespace stoker::augment {

// What part of the source to scale, in source pixels, fractions allowed: Pillow's box (which it keeps as float).
// The filter may look at source pixels just outside the box.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// The rectangle of the scaled picture that is wanted; nothing else is computed.
struct Window {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

// One axis of a resize: for each wanted output pixel the first source pixel and `taps` weights of 22 fractional bits.
struct AxisWeights {
  int taps = 0;
  std::vector<int> first;    // [outputs]
  std::vector<int> count;    // [outputs], at most taps
  std::vector<int> weights;  // [outputs * taps], zero beyond count
};

// Memory that is kept between calls.
struct ResizeScratch {
  AxisWeights horizontal;
  AxisWeights vertical;
  std::vector<std::uint8_t> rows;  // after the horizontal pass
  std::vector<int> sums;           // of one output row
  std::vector<double> exact;       // weights of one output pixel
};

// Scales box of source to scaled_width x scaled_height and writes the window of the result to out: rows of
// out_stride bytes, window.width * channels of them used. The window must lie within the scaled picture and the box
// within the source; every size at least 1, channels 1 ... 4; ConfigError otherwise.
void resize(ImageView source, const Box& box, int scaled_width, int scaled_height, const Window& window,
            std::uint8_t* out, std::ptrdiff_t out_stride, ResizeScratch& scratch);

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// An image in host memory: 8 bits per channel, rows from top to bottom, channels interleaved (HWC). Filled by decoders,
// read by policies. Plain values: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::augment {

// Readable bytes beyond the rows of a decoder or a store, for vector instructions.
inline constexpr int kSlack = 64;

// A rectangle of pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Region&) const = default;
};

// A view of borrowed pixels, possibly a rectangle within a wider image.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
  std::ptrdiff_t stride = 0;  // bytes from one row to the next

  [[nodiscard]] const std::uint8_t* row(int y) const { return pixels + y * stride; }
  // The rectangle of width x height pixels with top left corner (left, top); must be inside the image.
  [[nodiscard]] ImageView part(int left, int top, int part_width, int part_height) const {
    return {.pixels = row(top) + static_cast<std::ptrdiff_t>(left) * channels,
            .width = part_width,
            .height = part_height,
            .channels = channels,
            .stride = stride};
  }
  // The whole image that has this view as its rectangle at (left, top); no other pixel may be read.
  [[nodiscard]] ImageView as_part_of(int whole_width, int whole_height, int left, int top) const {
    const auto before = static_cast<std::uintptr_t>(top * stride + static_cast<std::ptrdiff_t>(left) * channels);
    const auto address = reinterpret_cast<std::uintptr_t>(pixels) - before;  // may not be valid memory
    return {.pixels = reinterpret_cast<const std::uint8_t*>(address),
            .width = whole_width,
            .height = whole_height,
            .channels = channels,
            .stride = stride};
  }
};

struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // height * width * channels, without gaps; slack may follow

  // Sets the size and keeps the memory; pixel values are then undefined. slack: bytes after the pixels; kSlack if
  // view() will be used as a part of a larger image.
  void reshape(int new_width, int new_height, int new_channels, std::size_t slack = 0) {
    width = new_width, height = new_height, channels = new_channels;
    pixels.resize(static_cast<std::size_t>(new_width) * static_cast<std::size_t>(new_height) *
                      static_cast<std::size_t>(new_channels) +
                  slack);
  }
  [[nodiscard]] ImageView view() const {
    return {.pixels = pixels.data(),
            .width = width,
            .height = height,
            .channels = channels,
            .stride = static_cast<std::ptrdiff_t>(width) * channels};
  }
};

}  // namespace stoker::augment

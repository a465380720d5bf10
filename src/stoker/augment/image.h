// SPDX-License-Identifier: Apache-2.0
// An image in host memory: 8 bits a channel, rows from top to bottom, channels interleaved (HWC). The decoders fill
// it, the policies read it. Plain values: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::augment {

// Bytes beyond the rows that a decoder or a store hands out, which vector instructions may read.
inline constexpr int kSlack = 64;

// A rectangle of pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Region&) const = default;
};

// A loan of somebody's pixels, possibly a rectangle within a wider image.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
  std::ptrdiff_t stride = 0;  // bytes from one row to the next

  [[nodiscard]] const std::uint8_t* row(int y) const { return pixels + y * stride; }
  // The rectangle of width x height pixels whose top left corner is (left, top); it must lie within.
  [[nodiscard]] ImageView part(int left, int top, int part_width, int part_height) const {
    return {row(top) + static_cast<std::ptrdiff_t>(left) * channels, part_width, part_height, channels, stride};
  }
  // The whole image of which this is the rectangle at (left, top), and of which no other pixel may be read.
  [[nodiscard]] ImageView as_part_of(int whole_width, int whole_height, int left, int top) const {
    const auto before = static_cast<std::uintptr_t>(top * stride + static_cast<std::ptrdiff_t>(left) * channels);
    const auto address = reinterpret_cast<std::uintptr_t>(pixels) - before;  // maybe nobody's memory
    return {reinterpret_cast<const std::uint8_t*>(address), whole_width, whole_height, channels, stride};
  }
};

struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // height * width * channels, without gaps; maybe slack behind them

  // New size; keeps the memory it has. The pixels' values are then of no use. slack: bytes beyond them, kSlack for
  // whom view() will be handed out as a part of a larger image.
  void reshape(int new_width, int new_height, int new_channels, std::size_t slack = 0) {
    width = new_width, height = new_height, channels = new_channels;
    pixels.resize(static_cast<std::size_t>(new_width) * static_cast<std::size_t>(new_height) *
                      static_cast<std::size_t>(new_channels) +
                  slack);
  }
  [[nodiscard]] ImageView view() const {
    return {pixels.data(), width, height, channels, static_cast<std::ptrdiff_t>(width) * channels};
  }
};

}  // namespace stoker::augment

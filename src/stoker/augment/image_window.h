// SPDX-License-Identifier: Apache-2.0
// Rows of a batch as windows into images of the same size as the row: the image, its shift, and mirroring. Shared by
// all devices that hold images. Plain values; no state.
#pragma once

#include <cstdint>

namespace stoker::augment {

// Shape of many images of equal size, stored one after the other: 8 bits per channel, HWC.
struct ImageShape {
  std::int64_t images = 0;
  int height = 0, width = 0, channels = 0;

  // Bytes of one image, at most 16384 x 16384 x 3.
  [[nodiscard]] constexpr int image_bytes() const { return height * width * channels; }
  [[nodiscard]] constexpr std::int64_t bytes() const { return images * image_bytes(); }
};

// The source of a row's pixels. Four words, so that one copy moves many rows to a device.
struct WindowDraw {
  std::int32_t image = 0;
  std::int32_t left = 0, top = 0;  // of the window in the image; outside is black
  std::int32_t mirrored = 0;       // 1: columns of the window from right to left

  static constexpr int kWords = 4;
  bool operator==(const WindowDraw&) const = default;
};
static_assert(sizeof(WindowDraw) == WindowDraw::kWords * sizeof(std::int32_t));

// Writes `count` bytes of the row, starting at its byte `first`; image: first byte of the drawn image. The CPU calls it
// for a whole row, a GPU thread for a few bytes.
constexpr void fill_window(const ImageShape& shape, const WindowDraw& drawn, const std::uint8_t* image, int first,
                           int count, std::uint8_t* out) {
  const int pixel = first / shape.channels;
  int channel = first % shape.channels;
  int x = pixel % shape.width, y = pixel / shape.width;
  for (int i = 0; i < count; ++i) {
    const int from_x = (drawn.mirrored != 0 ? shape.width - 1 - x : x) + drawn.left;
    const int from_y = y + drawn.top;
    const bool inside = from_x >= 0 && from_x < shape.width && from_y >= 0 && from_y < shape.height;
    out[i] = inside ? image[(from_y * shape.width + from_x) * shape.channels + channel] : std::uint8_t{0};
    if (++channel == shape.channels) {
      channel = 0;
      if (++x == shape.width) {
        x = 0;
        ++y;
      }
    }
  }
}

}  // namespace stoker::augment

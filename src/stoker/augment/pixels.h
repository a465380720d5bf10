// SPDX-License-Identifier: Apache-2.0
// An image that is changed in place, usually a row of a batch: 8 bits per channel, rows from top to bottom without
// gaps, channels interleaved (HWC). Every operation of this room works on one. A view: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::augment {

struct Pixels {
  std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;  // 1 or 3

  [[nodiscard]] std::ptrdiff_t stride() const { return static_cast<std::ptrdiff_t>(width) * channels; }
  [[nodiscard]] std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(width) * height; }
  [[nodiscard]] std::ptrdiff_t bytes() const { return count() * channels; }
  [[nodiscard]] std::uint8_t* row(int y) const { return data + y * stride(); }
};

// Memory of one thread for operations that read neighbours; reused for every image.
struct PixelScratch {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint16_t> rows;
  std::vector<std::uint32_t> sums;
};

}  // namespace stoker::augment

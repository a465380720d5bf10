// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/exif.h"

#include <algorithm>
#include <cstdint>

namespace stoker::data {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;          // field type: 16 bits
constexpr std::size_t kDirectoryEntry = 12;  // bytes

// Integers of a TIFF block in its byte order; 0 beyond its end.
struct Tiff {
  Bytes bytes;
  bool little = false;

  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t length) const {
    if (at > bytes.size() || length > bytes.size() - at) {
      return 0;
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t k = little ? length - 1 - i : i;
      value = (value << 8) | std::to_integer<std::uint32_t>(bytes[at + k]);
    }
    return value;
  }
};

// How to read the upright image from the stored one.
struct Turn {
  bool swapped;  // rows of the upright image are columns of the stored one
  bool from_right, from_bottom;
};

Turn turn_of(int orientation) {
  return {orientation >= 5, orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
          orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7};
}

}  // namespace

int exif_orientation(Bytes block) {
  if (block.size() < 8) {
    return 1;
  }
  const Tiff tiff{block, block[0] == std::byte{'I'}};
  const std::size_t directory = tiff.number(4, 4);
  const std::size_t entries = tiff.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kDirectoryEntry;
    if (entry + kDirectoryEntry > block.size()) {
      break;
    }
    if (tiff.number(entry, 2) == kOrientationTag && tiff.number(entry + 2, 2) == kShort) {
      const std::uint32_t value = tiff.number(entry + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

void turn_upright(augment::ImageView from, int orientation, augment::Image& to) {
  const Turn turn = turn_of(orientation);
  to.reshape(turn.swapped ? from.height : from.width, turn.swapped ? from.width : from.height, from.channels,
             augment::kSlack);
  // The place of the first upright pixel in `from`, and the steps from there along rows and columns.
  const std::uint8_t* start = from.row(turn.from_bottom ? from.height - 1 : 0) +
                              static_cast<std::ptrdiff_t>(turn.from_right ? from.width - 1 : 0) * from.channels;
  const std::ptrdiff_t along_x = turn.from_right ? -from.channels : from.channels;
  const std::ptrdiff_t along_y = turn.from_bottom ? -from.stride : from.stride;
  const std::ptrdiff_t column = turn.swapped ? along_y : along_x;
  const std::ptrdiff_t row = turn.swapped ? along_x : along_y;
  std::uint8_t* out = to.pixels.data();
  for (int y = 0; y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      out = std::copy_n(start + y * row + x * column, from.channels, out);
    }
  }
}

augment::Region region_as_stored(const augment::Region& region, int orientation, int width, int height) {
  const Turn turn = turn_of(orientation);
  augment::Region stored = region;
  if (turn.swapped) {
    stored = {region.top, region.left, region.height, region.width};
  }
  if (turn.from_right) {
    stored.left = width - stored.left - stored.width;
  }
  if (turn.from_bottom) {
    stored.top = height - stored.top - stored.height;
  }
  return stored;
}

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Checks for every image decoder: its pixels equal those of a golden table, and a decoded part equals the same part of
// the whole image. Used by tests of the data room. No state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "stoker/data/decode/image_decode.h"
#include "support/images.h"

namespace stoker::testing {

// Decodes every file of folder that tests/golden/<table> names, and compares sizes and hashes. Returns the number of
// files.
inline int expect_goldens(const std::string& table, const std::filesystem::path& folder) {
  std::ifstream file(source_folder() / "tests/golden" / table);
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream in(line);
    std::string name;
    int channels = 0, width = 0, height = 0;
    std::uint64_t hash = 0;
    in >> name >> channels >> width >> height >> std::hex >> hash;
    std::vector<std::byte> bytes;
    read_file(folder / name, bytes);
    augment::Image out;
    data::decode_image(bytes, channels, {}, out, name);
    EXPECT_EQ(out.width, width) << line;
    EXPECT_EQ(out.height, height) << line;
    EXPECT_EQ(out.channels, channels) << line;
    EXPECT_EQ(fnv1a(out.pixels), hash) << line;
    const data::ImageInfo info = data::probe_image(bytes, {}, name);
    EXPECT_EQ(info.width, width) << line;
    EXPECT_EQ(info.height, height) << line;
    ++cases;
  }
  return cases;
}

// Compares `tries` regions of the image at `path` with the whole decoded image, both at 1 / shrink of its size, or at
// the largest shrink that the image supports.
inline void expect_parts_of(const std::filesystem::path& path, int channels, int tries, int shrink = 1) {
  std::vector<std::byte> bytes;
  read_file(path, bytes);
  data::ImageDecoder at_once, decoder;  // decoder is reused for all regions, like in a loader
  const data::ImageDecoder::Size size = at_once.open(bytes, channels, {}, "whole");
  shrink = std::min(shrink, at_once.most_shrink());
  const int width = (size.width + shrink - 1) / shrink, height = (size.height + shrink - 1) / shrink;
  const augment::ImageView whole = at_once.decode({0, 0, width, height}, "whole", shrink);
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < tries; ++i) {
    ASSERT_EQ(decoder.open(bytes, channels, {}, "part").width, size.width);
    augment::Region region{below(width), below(height), 0, 0};
    region.width = 1 + below(width - region.left);
    region.height = 1 + below(height - region.top);
    const augment::ImageView view = decoder.decode(region, "part", shrink);
    ASSERT_EQ(view.channels, channels);
    ASSERT_EQ(view.width, width);
    ASSERT_EQ(view.height, height);
    for (int y = region.top; y < region.top + region.height; ++y) {
      const std::ptrdiff_t first = std::ptrdiff_t{region.left} * channels;
      ASSERT_TRUE(std::equal(view.row(y) + first, view.row(y) + first + std::ptrdiff_t{region.width} * channels,
                             whole.row(y) + first))
          << path << ": row " << y << " of " << region.width << " x " << region.height << " at " << region.left << ", "
          << region.top << " of " << width << " x " << height;
    }
  }
}

}  // namespace stoker::testing

// SPDX-License-Identifier: Apache-2.0
// The resize equals Pillow's bit for bit, compared by hashes of Pillow's own results (tests/golden/make_images.py).
#include "stoker/augment/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;
using testing::fnv1a;

std::vector<std::string> golden_lines(const char* name) {
  std::ifstream file(testing::source_folder() / "tests/golden" / name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) {
      lines.push_back(line);
    }
  }
  return lines;
}

void expect_pillows(const char* table, Interpolation interpolation) {
  const auto lines = golden_lines(table);
  ASSERT_EQ(lines.size(), 10u);
  ResizeScratch scratch;  // shared on purpose: nothing may be left over from the previous case
  for (const std::string& line : lines) {
    std::istringstream in(line);
    int width = 0, height = 0, channels = 0, scaled_width = 0, scaled_height = 0;
    Box box;
    Region window;
    std::uint64_t hash = 0;
    in >> width >> height >> channels >> box.left >> box.top >> box.right >> box.bottom >> scaled_width >>
        scaled_height >> window.left >> window.top >> window.width >> window.height >> std::hex >> hash;
    ASSERT_TRUE(in) << line;
    const Image image = computed_image(width, height, channels);
    std::vector<std::uint8_t> out(static_cast<std::size_t>(window.width * window.height * channels));
    resize(image.view(), box, scaled_width, scaled_height, window, false, out.data(), window.width * channels, scratch,
           interpolation);
    EXPECT_EQ(fnv1a(out), hash) << table << ": " << line;
  }
}

TEST(Resize, EqualsPillow) {
  expect_pillows("resize.tsv", Interpolation::kBilinear);
  expect_pillows("resize_bicubic.tsv", Interpolation::kBicubic);
}

TEST(Resize, AWindowIsThatPartOfTheWhole) {
  const Image image = computed_image(61, 43, 3);
  const Box all{0, 0, 61, 43};
  ResizeScratch scratch;
  std::vector<std::uint8_t> whole(29 * 90 * 3), part(7 * 11 * 3);
  resize(image.view(), all, 29, 90, {0, 0, 29, 90}, false, whole.data(), 29 * 3, scratch);
  resize(image.view(), all, 29, 90, {20, 70, 7, 11}, false, part.data(), 7 * 3, scratch);
  for (int y = 0; y < 11; ++y) {
    for (int i = 0; i < 21; ++i) {
      ASSERT_EQ(part[static_cast<std::size_t>(y * 21 + i)],
                whole[static_cast<std::size_t>(((y + 70) * 29 + 20) * 3 + i)]);
    }
  }
}

// Sizes and channels below, at and above the size of a vector; extremes that saturate; a view with gaps between its
// rows.
class ResizeBy : public ::testing::TestWithParam<Interpolation> {};
INSTANTIATE_TEST_SUITE_P(Resize, ResizeBy, ::testing::Values(Interpolation::kBilinear, Interpolation::kBicubic));

TEST_P(ResizeBy, EveryFamilyOfKernelsComputesThePlainPixels) {
  std::mt19937 random(3);
  const auto within = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  ResizeScratch plain;
  plain.kernels = &plain_kernels();
  std::vector<ResizeScratch> others;
  for (const PixelKernels* family : runnable_kernels().subspan(1)) {
    others.emplace_back().kernels = family;
  }
  for (int round = 0; round < 400; ++round) {
    const int channels = round % 4 == 0 ? within(1, 4) : 3;
    Image image = computed_image(within(1, 90), within(1, 70), channels, round);
    if (round % 3 == 0) {
      for (std::uint8_t& pixel : image.pixels) {
        pixel = random() % 2 == 0 ? 0 : 255;
      }
    }
    ImageView source = image.view();
    if (source.width > 2 && source.height > 2) {
      source = source.part(1, 1, within(1, source.width - 2), within(1, source.height - 2));
    }
    const int width = within(1, 100), height = within(1, 60);
    Region window{within(0, width - 1), within(0, height - 1), 0, 0};
    window.width = within(1, width - window.left);
    window.height = within(1, height - window.top);
    const int stride = window.width * channels;
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(stride * window.height + 1), 99);
    const Box box{0, 0, static_cast<double>(source.width), static_cast<double>(source.height)};
    resize(source, box, width, height, window, round % 2 == 0, expected.data(), stride, plain, GetParam());
    for (ResizeScratch& other : others) {
      std::vector<std::uint8_t> out(expected.size(), 99);
      resize(source, box, width, height, window, round % 2 == 0, out.data(), stride, other, GetParam());
      ASSERT_EQ(out, expected) << other.kernels->name << ": " << source.width << "x" << source.height << "x" << channels
                               << " to " << width << "x" << height;
      ASSERT_EQ(out.back(), 99) << other.kernels->name << " writes beyond the end";
    }
  }
}

// The family is chosen by measurement, so it can differ from run to run. Its results cannot, by the test above.
TEST(Resize, TheChosenKernelsAreOneFamilyOfThoseThatRunHere) {
  const auto families = runnable_kernels();
  EXPECT_EQ(families.front(), &plain_kernels());
  EXPECT_EQ(std::ranges::count(families, &fastest_kernels()), 1);
  EXPECT_EQ(&fastest_kernels(), &fastest_kernels());
}

TEST(Resize, KeepsAPlainColourAndTheSameSize) {
  Image plain = computed_image(50, 40, 3);
  std::fill(plain.pixels.begin(), plain.pixels.end(), std::uint8_t{255});
  ResizeScratch scratch;
  std::vector<std::uint8_t> out(13 * 17 * 3);
  resize(plain.view(), {0, 0, 50, 40}, 13, 17, {0, 0, 13, 17}, false, out.data(), 13 * 3, scratch);
  EXPECT_EQ(std::ranges::count(out, 255), 13 * 17 * 3);
  const Image image = computed_image(50, 40, 3);
  out.resize(image.pixels.size());
  resize(image.view(), {0, 0, 50, 40}, 50, 40, {0, 0, 50, 40}, false, out.data(), 50 * 3, scratch);
  EXPECT_EQ(out, image.pixels);
}

TEST(Resize, RefusesWhatCannotBe) {
  const Image image = computed_image(5, 5, 3);
  ResizeScratch scratch;
  std::vector<std::uint8_t> out(300);
  const auto go = [&](Box box, int w, int h, Region window) {
    resize(image.view(), box, w, h, window, false, out.data(), 15, scratch);
  };
  EXPECT_THROW(go({0, 0, 6, 5}, 5, 5, {0, 0, 5, 5}), ConfigError);
  EXPECT_THROW(go({0, 0, 0, 5}, 5, 5, {0, 0, 5, 5}), ConfigError);
  EXPECT_THROW(go({0, 0, NAN, 5}, 5, 5, {0, 0, 5, 5}), ConfigError);
  EXPECT_THROW(go({0, 0, 5, 5}, 0, 5, {0, 0, 5, 5}), ConfigError);
  EXPECT_THROW(go({0, 0, 5, 5}, 5, 5, {1, 0, 5, 5}), ConfigError);
}

}  // namespace
}  // namespace stoker::augment

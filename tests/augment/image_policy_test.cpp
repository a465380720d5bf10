// SPDX-License-Identifier: Apache-2.0
// Draws depend only on (seed, epoch, sample) and stay within the image. Executing them equals a plain, slow twin.
#include "stoker/augment/image_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "stoker/augment/pixel_kernels.h"
#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;
using testing::fnv1a;

std::vector<std::uint8_t> run(const ImagePolicy& policy, const ImageDraw& drawn, const Image& image) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(policy.out_width * policy.out_height * image.channels), 77);
  ResizeScratch scratch;
  execute(policy, drawn, image.view(), out, scratch);
  return out;
}

TEST(ImagePolicy, CentreCropEqualsTorchvisionOnPillow) {
  std::ifstream file(testing::source_folder() / "tests/golden/centre_crop.tsv");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream in(line);
    int width = 0, height = 0, resize = 0, out = 0;
    std::uint64_t hash = 0;
    in >> width >> height >> resize >> out >> std::hex >> hash;
    ImagePolicy policy{.crop = Crop::kResizeCentre, .out_width = out, .out_height = out, .resize = resize};
    const Image image = computed_image(width, height, 3);
    EXPECT_EQ(fnv1a(run(policy, draw(policy, width, height, {}), image)), hash) << line;
    ++cases;
  }
  EXPECT_EQ(cases, 4);
}

class ImagePolicyBy : public ::testing::TestWithParam<Interpolation> {};
INSTANTIATE_TEST_SUITE_P(ImagePolicy, ImagePolicyBy,
                         ::testing::Values(Interpolation::kBilinear, Interpolation::kBicubic));

// Poisoned pixels outside the needed region never affect the result.
TEST_P(ImagePolicyBy, ReadsNoMoreThanItNeeds) {
  for (const Crop crop : {Crop::kNone, Crop::kResizeCentre, Crop::kRandomResized, Crop::kPad}) {
    for (std::uint64_t sample = 0; sample < 60; ++sample) {
      const int width = 20 + static_cast<int>(sample * 7 % 50), height = 20 + static_cast<int>(sample * 11 % 40);
      const ImagePolicy policy{.crop = crop,
                               .out_width = 16,
                               .out_height = 12,
                               .resize = 18,
                               .pad = 20,
                               .flip = true,
                               .interpolation = GetParam()};
      const ImageDraw drawn = draw(policy, width, height, {.seed = 3, .epoch = 0, .sample = sample});
      const Region region = needed(policy, drawn);
      const Image image = computed_image(width, height, 3);
      Image poisoned = image;
      std::size_t kept = 0;
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const bool wanted =
              x >= region.left && x < region.left + region.width && y >= region.top && y < region.top + region.height;
          kept += wanted;
          if (!wanted) {
            std::fill_n(poisoned.pixels.begin() + (y * width + x) * 3, 3, static_cast<std::uint8_t>(x ^ 0x5A));
          }
        }
      }
      ASSERT_EQ(kept, static_cast<std::size_t>(region.width * region.height))
          << "the needed region is not within the image";
      EXPECT_EQ(run(policy, drawn, image), run(policy, drawn, poisoned)) << static_cast<int>(crop) << ", " << sample;
      if (crop == Crop::kResizeCentre && GetParam() == Interpolation::kBilinear) {
        EXPECT_LT(kept, static_cast<std::size_t>(width * height));
      }
    }
  }
}

// The means of blocks of shrink x shrink pixels, without pixels beyond the image. A decoder returns these.
Image shrunk(const Image& image, int shrink) {
  Image small;
  small.reshape((image.width + shrink - 1) / shrink, (image.height + shrink - 1) / shrink, image.channels);
  for (int y = 0; y < small.height; ++y) {
    for (int x = 0; x < small.width; ++x) {
      for (int c = 0; c < image.channels; ++c) {
        int sum = 0, count = 0;
        for (int v = y * shrink; v < std::min((y + 1) * shrink, image.height); ++v) {
          for (int u = x * shrink; u < std::min((x + 1) * shrink, image.width); ++u, ++count) {
            sum += image.pixels[static_cast<std::size_t>((v * image.width + u) * image.channels + c)];
          }
        }
        small.pixels[static_cast<std::size_t>((y * small.width + x) * image.channels + c)] =
            static_cast<std::uint8_t>((2 * sum + count) / (2 * count));
      }
    }
  }
  return small;
}

// The image changes slowly: a crop moved by one of its own pixels would differ by more than the limit.
TEST_P(ImagePolicyBy, AShrunkSourceGivesNearlyTheSamePixelsInTheSamePlaces) {
  Image image;
  image.reshape(613, 409, 3);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      std::uint8_t* pixel = image.pixels.data() + (y * image.width + x) * 3;
      pixel[0] = static_cast<std::uint8_t>(x * 255 / image.width);
      pixel[1] = static_cast<std::uint8_t>(y * 255 / image.height);
      pixel[2] = static_cast<std::uint8_t>((x + y) / 6);
    }
  }
  int times[9] = {};
  for (const Crop crop : {Crop::kNone, Crop::kResizeCentre, Crop::kRandomResized, Crop::kPad}) {
    for (std::uint64_t sample = 0; sample < 40; ++sample) {
      const int side = 20 + 30 * static_cast<int>(sample % 4);
      const ImagePolicy policy{.crop = crop,
                               .out_width = side,
                               .out_height = side,
                               .resize = side + 2,
                               .flip = true,
                               .interpolation = GetParam(),
                               .shrink = true};
      ImageDraw drawn = draw(policy, image.width, image.height, {.seed = 3, .epoch = 0, .sample = sample});
      const auto exact = run(policy, drawn, image);
      drawn.shrink = largest_shrink(policy, drawn, 8);
      ++times[drawn.shrink];
      const Image small = shrunk(image, drawn.shrink);
      const Region region = needed(policy, drawn);
      ASSERT_GE(std::min(region.left, region.top), 0);
      ASSERT_LE(region.left + region.width, small.width);
      ASSERT_LE(region.top + region.height, small.height);
      const auto fast = run(policy, drawn, small);
      int most = 0;
      for (std::size_t i = 0; i < fast.size(); ++i) {
        most = std::max(most, std::abs(fast[i] - exact[i]));
      }
      EXPECT_LE(most, 2) << static_cast<int>(crop) << ", " << sample << ", shrunk to 1/" << drawn.shrink;
    }
  }
  EXPECT_GE(std::min({times[2], times[4], times[8]}), 5);
}

TEST(ImagePolicy, ShrinksNoFurtherThanTheOutput) {
  ImagePolicy policy{.out_width = 100, .out_height = 100, .shrink = true};
  const auto at = [&](int width, int height, int most = 8) {
    return largest_shrink(policy, draw(policy, width, height, {}), most);
  };
  EXPECT_EQ(at(199, 900), 1);
  EXPECT_EQ(at(200, 900), 2);
  EXPECT_EQ(at(400, 399), 2);
  EXPECT_EQ(at(800, 800), 8);
  EXPECT_EQ(at(9000, 9000), 8);
  EXPECT_EQ(at(9000, 9000, 1), 1);
  policy.shrink = false;
  EXPECT_EQ(at(800, 800), 1);
}

// Mirrored copies by vector instructions equal plain ones and the definition, for widths around the size of a vector.
TEST(ImagePolicy, MirrorsRowsOfEveryWidth) {
  for (int width = 1; width <= 70; ++width) {
    const ImagePolicy policy{.out_width = width, .out_height = 3};
    const Image image = computed_image(width, 3, 3, width);
    ImageDraw drawn = draw(policy, width, 3, {});
    drawn.flipped = true;
    std::vector<std::uint8_t> plain(image.pixels.size());
    ResizeScratch scratch;
    scratch.kernels = &plain_kernels();
    execute(policy, drawn, image.view(), plain, scratch);
    EXPECT_EQ(run(policy, drawn, image), plain) << width;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const std::size_t pixel = i / 3 % static_cast<std::size_t>(width), row = i / 3 / static_cast<std::size_t>(width);
      const std::size_t from = (row + 1) * static_cast<std::size_t>(width) - 1 - pixel;
      ASSERT_EQ(plain[i], image.pixels[from * 3 + i % 3]) << width;
    }
  }
}

// Sizes whose rows the vector kernels copy as one run of bytes, and other sizes.
TEST(ImagePolicy, EveryFamilyOfKernelsPlacesThePlainRows) {
  struct Size {
    int width, height, channels;
  };
  for (const Size size :
       {Size{32, 32, 3}, {64, 9, 3}, {64, 64, 1}, {80, 41, 1}, {33, 60, 3}, {28, 28, 1}, {224, 40, 3}}) {
    const ImagePolicy policy{
        .crop = Crop::kPad, .out_width = size.width, .out_height = size.height, .pad = 5, .flip = true};
    const Image image = computed_image(size.width, size.height, size.channels, 1);
    for (const PixelKernels* family : runnable_kernels().subspan(1)) {
      ResizeScratch scratch, plain;
      scratch.kernels = family;
      plain.kernels = &plain_kernels();
      for (std::uint64_t sample = 0; sample < 60; ++sample) {
        const ImageDraw drawn = draw(policy, size.width, size.height, {.seed = 8, .epoch = 0, .sample = sample});
        std::vector<std::uint8_t> out(image.pixels.size() + 1, 77), expected = out;
        execute(policy, drawn, image.view(), std::span(out).first(image.pixels.size()), scratch);
        execute(policy, drawn, image.view(), std::span(expected).first(image.pixels.size()), plain);
        ASSERT_EQ(out, expected) << family->name << " " << size.width << "x" << size.height << "x" << size.channels
                                 << ", sample " << sample;
      }
    }
  }
}

TEST(ImagePolicy, PadCropMovesAndBlackensAsAPlainTwin) {
  const ImagePolicy policy{.crop = Crop::kPad, .out_width = 12, .out_height = 10, .pad = 3, .flip = true};
  const Image image = computed_image(12, 10, 3, 1);
  int flips = 0, moved = 0;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const ImageDraw drawn = draw(policy, 12, 10, {.seed = 5, .epoch = 1, .sample = sample});
    ASSERT_LE(std::abs(drawn.offset_x), 3);
    ASSERT_LE(std::abs(drawn.offset_y), 3);
    flips += drawn.flipped;
    moved += drawn.offset_x == 3;
    const auto out = run(policy, drawn, image);
    for (int y = 0; y < 10; ++y) {
      for (int x = 0; x < 12; ++x) {
        const int from_x = (drawn.flipped ? 11 - x : x) + drawn.offset_x, from_y = y + drawn.offset_y;
        const bool inside = from_x >= 0 && from_x < 12 && from_y >= 0 && from_y < 10;
        for (int c = 0; c < 3; ++c) {
          const int expected = inside ? image.pixels[static_cast<std::size_t>((from_y * 12 + from_x) * 3 + c)] : 0;
          ASSERT_EQ(out[static_cast<std::size_t>((y * 12 + x) * 3 + c)], expected) << sample << " " << x << " " << y;
        }
      }
    }
  }
  EXPECT_NEAR(flips, 100, 30);
  EXPECT_NEAR(moved, 200.0 / 7, 20);
}

// The share of the area is uniform in (0.08, 0.5), with mean 0.29; the logarithm of the ratio is uniform, with mean 0.
TEST(ImagePolicy, RandomRectanglesHaveTheirDistribution) {
  const ImagePolicy policy{.crop = Crop::kRandomResized, .min_scale = 0.08, .max_scale = 0.5};
  double share = 0, log_ratio = 0;
  const int samples = 4000;
  for (int sample = 0; sample < samples; ++sample) {
    const ImageDraw drawn =
        draw(policy, 1000, 1000, {.seed = 9, .epoch = 2, .sample = static_cast<std::uint64_t>(sample)});
    ASSERT_GE(drawn.left, 0);
    ASSERT_GE(drawn.top, 0);
    ASSERT_LE(drawn.left + drawn.width, 1000);
    ASSERT_LE(drawn.top + drawn.height, 1000);
    share += drawn.width * drawn.height / 1e6 / samples;
    log_ratio += std::log(static_cast<double>(drawn.width) / drawn.height) / samples;
  }
  EXPECT_NEAR(share, 0.29, 0.01);
  EXPECT_NEAR(log_ratio, 0, 0.02);
}

TEST(ImagePolicy, ExtremeShapesStayInside) {
  const ImagePolicy policy{.crop = Crop::kRandomResized, .out_width = 8, .out_height = 8};
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 5000}, {5000, 1}, {3, 2}, {4000, 60000}}) {
    for (std::uint64_t sample = 0; sample < 50; ++sample) {
      const ImageDraw drawn = draw(policy, width, height, {.sample = sample});
      ASSERT_TRUE(drawn.left >= 0 && drawn.top >= 0 && drawn.width >= 1 && drawn.height >= 1);
      ASSERT_TRUE(drawn.left + drawn.width <= width && drawn.top + drawn.height <= height);
    }
  }
  // An evaluation image so long that its scaled width would overflow.
  const ImagePolicy centre{.crop = Crop::kResizeCentre, .out_width = 224, .out_height = 224, .resize = 16384};
  const Image line = computed_image(65500, 1, 1);
  EXPECT_EQ(run(centre, draw(centre, 65500, 1, {}), line).size(), 224u * 224u);
}

TEST(ImagePolicy, DrawsDependOnTheirAddressAlone) {
  const ImagePolicy policy{.crop = Crop::kRandomResized, .flip = true};
  const DrawKey key{.seed = 3, .epoch = 4, .sample = 5};
  const ImageDraw drawn = draw(policy, 640, 480, key);
  EXPECT_EQ(drawn, draw(policy, 640, 480, key));
  EXPECT_NE(drawn, draw(policy, 640, 480, {.seed = 4, .epoch = 4, .sample = 5}));
  EXPECT_NE(drawn, draw(policy, 640, 480, {.seed = 3, .epoch = 5, .sample = 5}));
  EXPECT_NE(drawn, draw(policy, 640, 480, {.seed = 3, .epoch = 4, .sample = 6}));
  EXPECT_NE(drawn, draw(policy, 640, 480, {.seed = 3, .epoch = 4, .sample = 5, .occurrence = 1}));
}

TEST(ImagePolicy, RefusesWhatCannotBe) {
  EXPECT_THROW(check({.out_width = 0}), ConfigError);
  EXPECT_THROW(check({.out_height = 1 << 20}), ConfigError);
  EXPECT_THROW(check({.crop = Crop::kResizeCentre, .out_width = 224, .resize = 100}), ConfigError);
  EXPECT_THROW(check({.crop = Crop::kPad, .pad = -1}), ConfigError);
  EXPECT_THROW(check({.crop = Crop::kRandomResized, .min_scale = 0}), ConfigError);
  EXPECT_THROW(check({.crop = Crop::kRandomResized, .min_scale = NAN}), ConfigError);
  EXPECT_THROW(check({.crop = Crop::kRandomResized, .max_ratio = 0.1}), ConfigError);
  EXPECT_NO_THROW(check(ImagePolicy{}));
}

}  // namespace
}  // namespace stoker::augment

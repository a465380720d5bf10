// SPDX-License-Identifier: Apache-2.0
// Affine equals a twin in double precision, including fill colour and border; draws stay within their ranges; moves by
// whole pixels are exact.
#include "stoker/augment/affine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;

Image moved(Image image, const Motion& motion, std::array<std::uint8_t, 3> fill) {
  PixelScratch scratch;
  execute(affine_draw(motion, image.width, image.height, fill),
          {image.pixels.data(), image.width, image.height, image.channels}, scratch);
  return image;
}

// Computes the forward transform (scaled, sheared across, sheared down, turned clockwise, moved) and inverts it by
// Cramer's rule. Each neighbour outside the image counts as the fill colour.
double expected(const Image& image, const Motion& motion, double fill, int x, int y, int channel) {
  constexpr double kDegree = M_PI / 180;
  const double shear_x = -std::tan(motion.shear_x * kDegree), shear_y = -std::tan(motion.shear_y * kDegree);
  // SHy (SHx v): across first.
  const double h00 = 1, h01 = shear_x, h10 = shear_y, h11 = 1 + shear_x * shear_y;
  const double cosine = std::cos(motion.angle * kDegree) * motion.scale;
  const double sine = std::sin(motion.angle * kDegree) * motion.scale;
  const double m00 = cosine * h00 - sine * h10, m01 = cosine * h01 - sine * h11;
  const double m10 = sine * h00 + cosine * h10, m11 = sine * h01 + cosine * h11;
  const double u = x - (image.width - 1) / 2.0 - motion.translate_x;
  const double v = y - (image.height - 1) / 2.0 - motion.translate_y;
  const double determinant = m00 * m11 - m01 * m10;
  const double from_x = (m11 * u - m01 * v) / determinant + (image.width - 1) / 2.0;
  const double from_y = (m00 * v - m10 * u) / determinant + (image.height - 1) / 2.0;
  const double left = std::floor(from_x), top = std::floor(from_y);
  double sum = 0;
  for (const int j : {0, 1}) {
    for (const int i : {0, 1}) {
      const double column = left + i, row = top + j;
      const double weight = (1 - std::abs(from_x - column)) * (1 - std::abs(from_y - row));
      const bool inside = column >= 0 && row >= 0 && column < image.width && row < image.height;
      const auto at =
          (static_cast<std::ptrdiff_t>(row) * image.width + static_cast<std::ptrdiff_t>(column)) * image.channels +
          channel;
      sum += weight * (inside ? image.pixels[static_cast<std::size_t>(at)] : fill);
    }
  }
  return sum;
}

TEST(Affine, EqualsATwinInDoublePrecision) {
  for (const int channels : {1, 3}) {
    const Image image = computed_image(37, 23, channels);
    for (const Motion& motion :
         {Motion{30, 0, 0, 1, 0, 0}, {-100, 4, -3, 0.6, 12, -8}, {5, 0, 0, 2.5, 0, 30}, {170, -20, 9, 0.3, 40, 0}}) {
      const Image out = moved(image, motion, {200, 100, 50});
      for (int y = 0; y < 23; ++y) {
        for (int x = 0; x < 37; ++x) {
          for (int c = 0; c < channels; ++c) {
            const double fill = std::array{200, 100, 50}[static_cast<std::size_t>(c)];
            ASSERT_NEAR(out.pixels[static_cast<std::size_t>((y * 37 + x) * channels + c)],
                        expected(image, motion, fill, x, y, c), 0.63)  // 0.5 for rounding, 2^-12 of a pixel twice
                << motion.angle << ": " << x << " " << y << " " << c;
          }
        }
      }
    }
  }
}

TEST(Affine, WholeMovesAreExact) {
  const Image image = computed_image(20, 11, 3);
  EXPECT_EQ(moved(image, {}, {9, 9, 9}).pixels, image.pixels);
  const Image shifted = moved(image, {.translate_x = 3, .translate_y = -2}, {9, 8, 7});
  const Image turned = moved(image, {.angle = 180}, {9, 9, 9});
  for (int y = 0; y < 11; ++y) {
    for (int x = 0; x < 20; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto at = [&](int column, int row) { return static_cast<std::size_t>((row * 20 + column) * 3 + c); };
        const bool inside = x >= 3 && y < 9;
        ASSERT_EQ(shifted.pixels[at(x, y)], inside ? image.pixels[at(x - 3, y + 2)] : 9 - c);
        ASSERT_EQ(turned.pixels[at(x, y)], image.pixels[at(19 - x, 10 - y)]);
      }
    }
  }
}

TEST(Affine, FarMotionsAndThinImagesStayInside) {
  const Affine wild{.degrees = 180,
                    .translate_x = 1,
                    .translate_y = 1,
                    .min_scale = 0.05,
                    .max_scale = 20,
                    .shear_x = 80,
                    .shear_y = 80,
                    .fill = {7, 7, 7}};
  check(wild);
  PixelScratch scratch;
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 40}, {40, 1}, {2, 2}, {16384, 3}}) {
    Image image = computed_image(width, height, 1);
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const auto drawn = draw(wild, width, height, {.sample = sample});
      ASSERT_TRUE(drawn);
      execute(*drawn, {image.pixels.data(), width, height, 1}, scratch);
    }
  }
}

TEST(Affine, DrawsEvenlyWithinWhatIsAllowed) {
  const Affine half{.translate_x = 0.25, .probability = 0.5};
  int drawn_count = 0, left = 0, far = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const auto drawn = draw(half, 100, 50, {.seed = 3, .epoch = 1, .sample = sample});
    if (drawn) {
      const double move = -std::ldexp(static_cast<double>(drawn->matrix[2]), -32);
      ASSERT_EQ(move, std::round(move));
      ASSERT_LE(std::abs(move), 25);
      ASSERT_EQ(drawn->matrix[5], 0);
      ++drawn_count;
      left += move < 0;
      far += std::abs(move) > 12;
    }
  }
  EXPECT_NEAR(drawn_count, 1000, 90);
  EXPECT_NEAR(left, 0.49 * drawn_count, 80);
  EXPECT_NEAR(far, 0.5 * drawn_count, 80);
  EXPECT_EQ(draw(half, 100, 50, {.sample = 9}), draw(half, 100, 50, {.sample = 9}));
}

TEST(Affine, RefusesWhatCannotBe) {
  EXPECT_THROW(check(Affine{.degrees = 181}), ConfigError);
  EXPECT_THROW(check(Affine{.translate_y = -0.1}), ConfigError);
  EXPECT_THROW(check(Affine{.min_scale = 0}), ConfigError);
  EXPECT_THROW(check(Affine{.min_scale = 1.2}), ConfigError);
  EXPECT_THROW(check(Affine{.shear_x = 90}), ConfigError);
  EXPECT_THROW(check(Affine{.probability = NAN}), ConfigError);
  EXPECT_NO_THROW(check(Affine{}));
}

}  // namespace
}  // namespace stoker::augment

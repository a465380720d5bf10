// SPDX-License-Identifier: Apache-2.0
// Gaussian blur equals a twin in double precision with a two-dimensional kernel, also for images smaller than the
// kernel.
#include "stoker/augment/blur.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;

Image blurred(Image image, int kernel, double sigma) {
  PixelScratch scratch;
  execute(blur_draw(kernel, sigma), {image.pixels.data(), image.width, image.height, image.channels}, scratch);
  return image;
}

// Walks `steps` pixels, one at a time, and turns round at the ends.
int walked(int from, int steps, int n) {
  int at = from, direction = steps < 0 ? -1 : 1;
  for (int i = 0; i < std::abs(steps) && n > 1; ++i) {
    direction = at == 0 && direction < 0 ? 1 : at == n - 1 && direction > 0 ? -1 : direction;
    at += direction;
  }
  return at;
}

double expected(const Image& image, int kernel, double sigma, int x, int y, int channel) {
  double sum = 0, total = 0;
  for (int j = -(kernel / 2); j <= kernel / 2; ++j) {
    for (int i = -(kernel / 2); i <= kernel / 2; ++i) {
      const double weight = std::exp(-(i * i + j * j) / (2 * sigma * sigma));
      const int at = (walked(y, j, image.height) * image.width + walked(x, i, image.width)) * image.channels + channel;
      sum += weight * image.pixels[static_cast<std::size_t>(at)];
      total += weight;
    }
  }
  return sum / total;
}

TEST(Blur, EqualsATwinInDoublePrecision) {
  for (const auto& [width, height, channels, kernel, sigma] : {std::tuple{31, 17, 3, 5, 1.1},
                                                               {31, 17, 1, 23, 2.0},
                                                               {5, 4, 3, 23, 3.0},
                                                               {1, 9, 3, 7, 1.0},
                                                               {1, 1, 1, 63, 9.0}}) {
    const Image image = computed_image(width, height, channels);
    const Image result = blurred(image, kernel, sigma);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < channels; ++c) {
          ASSERT_NEAR(result.pixels[static_cast<std::size_t>((y * width + x) * channels + c)],
                      expected(image, kernel, sigma, x, y, c), 0.6)
              << kernel << " on " << width << "x" << height << ": " << x << " " << y << " " << c;
        }
      }
    }
  }
}

TEST(Blur, KeepsAPlainColourAndANarrowKernelKeepsAll) {
  Image plain = computed_image(40, 30, 3);
  std::ranges::fill(plain.pixels, std::uint8_t{255});
  EXPECT_EQ(blurred(plain, 63, 20).pixels, plain.pixels);
  const Image image = computed_image(40, 30, 3);
  EXPECT_EQ(blurred(image, 23, 0.1).pixels, image.pixels);
  EXPECT_EQ(blurred(image, 1, 2).pixels, image.pixels);
}

TEST(Blur, DrawsEvenlyWithinWhatIsAllowed) {
  const Blur blur{.kernel = 9, .min_sigma = 0.5, .max_sigma = 1.5, .probability = 0.5};
  const std::uint16_t narrow = blur_draw(9, 0.5).weights[0], middle = blur_draw(9, 1.0).weights[0],
                      wide = blur_draw(9, 1.5).weights[0];
  int drawn_count = 0, narrower = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    if (const auto drawn = draw(blur, {.seed = 1, .sample = sample})) {
      ASSERT_TRUE(drawn->weights[0] <= narrow && drawn->weights[0] >= wide);
      ++drawn_count;
      narrower += drawn->weights[0] > middle;
    }
  }
  EXPECT_NEAR(drawn_count, 1000, 90);
  EXPECT_NEAR(narrower, 0.5 * drawn_count, 80);
}

TEST(Blur, RefusesWhatCannotBe) {
  EXPECT_THROW(check(Blur{.kernel = 4}), ConfigError);
  EXPECT_THROW(check(Blur{.kernel = 65}), ConfigError);
  EXPECT_THROW(check(Blur{.min_sigma = 0}), ConfigError);
  EXPECT_THROW(check(Blur{.min_sigma = 3}), ConfigError);
  EXPECT_THROW(check(Blur{.probability = -1}), ConfigError);
  EXPECT_NO_THROW(check(Blur{}));
}

}  // namespace
}  // namespace stoker::augment

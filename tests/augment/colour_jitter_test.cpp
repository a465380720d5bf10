// SPDX-License-Identifier: Apache-2.0
// Colour jitter: the luma is exact. The hue equals the textbook computation through HSV in double precision. The order
// of the steps matters and is drawn evenly. Switching steps off does not change the draws of the others.
#include "stoker/augment/colour_jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stoker/augment/grey.h"
#include "stoker/augment/luma.h"
#include "stoker/base/error.h"
#include "support/images.h"

namespace stoker::augment {
namespace {

using testing::computed_image;

Image jittered(Image image, const ColourDraw& drawn) {
  execute(drawn, {image.pixels.data(), image.width, image.height, image.channels});
  return image;
}
Image jittered(const Image& image, Adjust what, double value) {
  return jittered(image, ColourDraw{{colour_step(what, value)}, 1});
}

TEST(ColourJitter, LumaIsExactForEveryColour) {
  for (int r = 0; r < 256; ++r) {
    for (int g = 0; g < 256; ++g) {
      for (int b = 0; b < 256; ++b) {
        ASSERT_EQ(luma(r, g, b), (2989 * r + 5870 * g + 1140 * b) / 10000) << r << " " << g << " " << b;
      }
    }
  }
}

// Smith 1978, through hue, saturation and value in 0 ... 1; 255.999 as in torchvision's conversion to uint8.
std::array<double, 3> turned(int red, int green, int blue, double turn) {
  const double r = red / 255.0, g = green / 255.0, b = blue / 255.0;
  const double value = std::max({r, g, b}), chroma = value - std::min({r, g, b});
  if (chroma == 0) {
    return {255.999 * r, 255.999 * g, 255.999 * b};
  }
  double hue = value == r ? (g - b) / chroma : value == g ? 2 + (b - r) / chroma : 4 + (r - g) / chroma;
  hue = std::fmod(hue + 6 * turn + 12, 6);
  const auto channel = [&](double n) {  // f(n) = V - V S max(0, min(k, 4 - k, 1)), k = n + H/60 mod 6
    const double k = std::fmod(n + hue, 6);
    return 255.999 * (value - chroma * std::max(0.0, std::min({k, 4 - k, 1.0})));
  };
  return {channel(5), channel(3), channel(1)};
}

TEST(ColourJitter, HueEqualsTheWayOverHsv) {
  Image image;
  image.reshape(52 * 52, 52, 3);
  auto* out = image.pixels.data();
  for (int i = 0; i < 52 * 52 * 52; ++i) {
    *out++ = static_cast<std::uint8_t>(i % 52 * 5), *out++ = static_cast<std::uint8_t>(i / 52 % 52 * 5);
    *out++ = static_cast<std::uint8_t>(i / (52 * 52) * 5);
  }
  for (const double turn : {0.0, 0.1, -0.1, 0.25, 0.5, -0.5, 0.3333}) {
    const Image result = jittered(image, Adjust::kHue, turn);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      const auto expected = turned(image.pixels[i], image.pixels[i + 1], image.pixels[i + 2], turn);
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_NEAR(result.pixels[i + c] + 0.5, expected[c], 0.52)  // truncation, and 2^-16 of a sextant
            << turn << ": " << int{image.pixels[i]} << " " << int{image.pixels[i + 1]} << " "
            << int{image.pixels[i + 2]};
      }
    }
  }
}

TEST(ColourJitter, NothingIsChangedByFactorOneAndHueZero) {
  const Image image = computed_image(33, 21, 3);
  for (const Adjust what : {Adjust::kBrightness, Adjust::kContrast, Adjust::kSaturation}) {
    EXPECT_EQ(jittered(image, what, 1).pixels, image.pixels);
  }
  EXPECT_EQ(jittered(image, Adjust::kHue, 0).pixels, image.pixels);
  const Image grey = computed_image(33, 21, 1);
  EXPECT_EQ(jittered(grey, Adjust::kHue, 0.3).pixels, grey.pixels);
  EXPECT_EQ(jittered(grey, Adjust::kSaturation, 0.3).pixels, grey.pixels);
  EXPECT_NE(jittered(grey, Adjust::kContrast, 0.3).pixels, grey.pixels);
}

TEST(ColourJitter, ExtremesStayInRange) {
  const Image image = computed_image(64, 64, 3);
  const auto grey_at = [&](std::size_t pixel) {
    return luma(image.pixels[pixel], image.pixels[pixel + 1], image.pixels[pixel + 2]);
  };
  double mean = 0;
  for (std::size_t pixel = 0; pixel < image.pixels.size(); pixel += 3) {
    mean += grey_at(pixel) / (64.0 * 64.0);
  }
  for (const Adjust what : {Adjust::kBrightness, Adjust::kContrast, Adjust::kSaturation}) {
    for (const double factor : {0.0, 11.0}) {
      const Image result = jittered(image, what, factor);
      for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        const double towards = what == Adjust::kBrightness ? 0 : what == Adjust::kContrast ? mean : grey_at(i / 3 * 3);
        const double expected = std::floor(factor * image.pixels[i] + (1 - factor) * towards);
        ASSERT_EQ(result.pixels[i], std::clamp(expected, 0.0, 255.0)) << i;
      }
    }
  }
}

TEST(ColourJitter, TheOrderCountsAndIsDrawnEvenly) {
  const Image image = computed_image(33, 21, 3);
  const ColourStep bright = colour_step(Adjust::kBrightness, 1.7), contrast = colour_step(Adjust::kContrast, 0.4);
  const Image one = jittered(image, ColourDraw{{bright, contrast}, 2});
  EXPECT_EQ(one.pixels, jittered(jittered(image, Adjust::kBrightness, 1.7), Adjust::kContrast, 0.4).pixels);
  EXPECT_NE(one.pixels, jittered(image, ColourDraw{{contrast, bright}, 2}).pixels);

  const ColourJitter all{.brightness = 0.4, .contrast = 0.4, .saturation = 1.5, .hue = 0.1};
  const ColourJitter some{.brightness = 0.4, .saturation = 1.5};
  std::map<std::array<Adjust, 4>, int> orders;
  double brightness = 0, hue = 0;
  for (std::uint64_t sample = 0; sample < 4800; ++sample) {
    const DrawKey key{.seed = 11, .epoch = 2, .sample = sample};
    const ColourDraw drawn = draw(all, key).value();
    ASSERT_EQ(drawn.count, 4);
    std::array<Adjust, 4> order{};
    std::ranges::transform(drawn.steps, order.begin(), &ColourStep::what);
    ++orders[order];
    std::vector<ColourStep> kept;
    for (const ColourStep& step : drawn.steps) {
      const double value = std::ldexp(step.amount, -16);
      switch (step.what) {
        case Adjust::kBrightness: brightness += value / 4800; [[fallthrough]];
        case Adjust::kContrast: ASSERT_TRUE(value >= 0.6 - 1e-4 && value <= 1.4 + 1e-4); break;
        case Adjust::kSaturation: ASSERT_TRUE(value >= 0 && value <= 2.5 + 1e-4); break;
        case Adjust::kHue:
          ASSERT_LE(std::abs(value), 0.6 + 1e-4);
          hue += value / 4800;
          break;
      }
      if (step.what == Adjust::kBrightness || step.what == Adjust::kSaturation) {
        kept.push_back(step);
      }
    }
    const ColourDraw fewer = draw(some, key).value();  // the same values, without the two steps that are off
    ASSERT_EQ(fewer.count, 2);
    ASSERT_TRUE(std::ranges::equal(std::span(fewer.steps).first(2), kept));
  }
  ASSERT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) {
    EXPECT_NEAR(count, 200, 60);
  }
  EXPECT_NEAR(brightness, 1, 0.015);
  EXPECT_NEAR(hue, 0, 0.02);
  EXPECT_FALSE(draw(ColourJitter{}, {}));
}

TEST(Grey, IsTheLumaInEveryChannel) {
  Image image = computed_image(13, 9, 3);
  const Image before = image;
  execute(GreyDraw{}, {image.pixels.data(), 13, 9, 3});
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const std::size_t first = i / 3 * 3;
    ASSERT_EQ(image.pixels[i], luma(before.pixels[first], before.pixels[first + 1], before.pixels[first + 2]));
  }
  int drawn = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    drawn += draw(Grey{.probability = 0.2}, {.sample = sample}).has_value();
  }
  EXPECT_NEAR(drawn, 400, 60);
}

TEST(ColourJitter, RefusesWhatCannotBe) {
  EXPECT_THROW(check(ColourJitter{.brightness = -0.1}), ConfigError);
  EXPECT_THROW(check(ColourJitter{.contrast = 11}), ConfigError);
  EXPECT_THROW(check(ColourJitter{.hue = 0.6}), ConfigError);
  EXPECT_THROW(check(ColourJitter{.probability = 1.1}), ConfigError);
  EXPECT_THROW(check(Grey{.probability = NAN}), ConfigError);
  EXPECT_NO_THROW(check(ColourJitter{}));
}

}  // namespace
}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/colour_jitter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stoker/augment/hue.h"
#include "stoker/augment/luma.h"
#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kFactorBits = 16;
constexpr std::int32_t kOne = 1 << kFactorBits;

// value: 8 bits of pixel and 16 bits of fraction, which are truncated.
std::uint8_t to_byte(std::int32_t value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255 << kFactorBits) >> kFactorBits);
}

// factor * pixel + rest for every byte.
void scale(Pixels pixels, std::int32_t factor, std::int32_t rest) {
  std::uint8_t* at = pixels.data;
  for (std::ptrdiff_t i = 0, bytes = pixels.bytes(); i < bytes; ++i) {
    at[i] = to_byte(at[i] * factor + rest);
  }
}

std::int64_t luma_sum(Pixels pixels) {
  std::int64_t sum = 0;
  for (int y = 0; y < pixels.height; ++y) {
    const std::uint8_t* at = pixels.row(y);
    std::int32_t line = 0;  // at most 255 * kMaxSide
    for (int x = 0; x < pixels.width; ++x) {
      line += pixels.channels == 1 ? at[x] : luma(at[3 * x], at[3 * x + 1], at[3 * x + 2]);
    }
    sum += line;
  }
  return sum;
}

// Away from or towards the mean luma of the image.
void contrast(Pixels pixels, std::int32_t factor) {
  scale(pixels, factor, static_cast<std::int32_t>(luma_sum(pixels) * (kOne - factor) / pixels.count()));
}

// Away from or towards the luma of each pixel.
void saturate(Pixels pixels, std::int32_t factor) {
  std::uint8_t* at = pixels.data;
  for (std::ptrdiff_t i = 0, count = pixels.count(); i < count; ++i, at += 3) {
    const std::int32_t r = at[0], g = at[1], b = at[2], rest = luma(r, g, b) * (kOne - factor);
    at[0] = to_byte(r * factor + rest);
    at[1] = to_byte(g * factor + rest);
    at[2] = to_byte(b * factor + rest);
  }
}

}  // namespace

void check(const ColourJitter& jitter) {
  const auto within = [](const char* name, double value, double high) {
    if (!(value >= 0 && value <= high)) {
      fail<ConfigError>("augment.colour", "{} must be 0 to {}, got {}", name, high, value);
    }
  };
  within("brightness", jitter.brightness, 10);
  within("contrast", jitter.contrast, 10);
  within("saturation", jitter.saturation, 10);
  within("hue", jitter.hue, 0.5);
  within("probability", jitter.probability, 1);
}

ColourStep colour_step(Adjust what, double value) {
  const double unit = what == Adjust::kHue ? 6 * value : value;
  return {what, static_cast<std::int32_t>(std::lround(std::ldexp(unit, kFactorBits)))};
}

std::optional<ColourDraw> draw(const ColourJitter& jitter, const DrawKey& key) {
  CounterRng random = key.random(RandomOp::kColour);
  const bool wanted = random.uniform() < jitter.probability;
  std::array<Adjust, 4> order = {Adjust::kBrightness, Adjust::kContrast, Adjust::kSaturation, Adjust::kHue};
  for (std::uint32_t i = 3; i > 0; --i) {  // Fisher and Yates
    std::swap(order[i], order[random.below(i + 1)]);
  }
  std::array<double, 4> values{};  // all are drawn, so that turning one off does not change the others
  const std::array<double, 4> spans = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
  for (std::size_t i = 0; i < 4; ++i) {
    const bool hue = i == 3;
    values[i] = random.uniform(hue ? -spans[i] : std::max(0.0, 1 - spans[i]), hue ? spans[i] : 1 + spans[i]);
  }
  ColourDraw drawn;
  for (const Adjust what : order) {
    const auto i = static_cast<std::size_t>(what);
    if (spans[i] > 0) {
      drawn.steps[static_cast<std::size_t>(drawn.count++)] = colour_step(what, values[i]);
    }
  }
  return wanted && drawn.count > 0 ? std::optional(drawn) : std::nullopt;
}

void execute(const ColourDraw& drawn, Pixels pixels) {
  for (int i = 0; i < drawn.count; ++i) {
    const ColourStep& step = drawn.steps[static_cast<std::size_t>(i)];
    const bool colour = pixels.channels == 3;
    switch (step.what) {
      case Adjust::kBrightness: scale(pixels, step.amount, 0); break;
      case Adjust::kContrast: contrast(pixels, step.amount); break;
      case Adjust::kSaturation: colour ? saturate(pixels, step.amount) : void(); break;
      case Adjust::kHue: colour ? turn_hue(pixels, step.amount) : void(); break;
    }
  }
}

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/affine.h"

#include <cmath>
#include <numbers>

#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kPositionBits = 32;
constexpr int kWeightBits = 11;  // of a weight between two neighbours
constexpr std::int32_t kOne = 1 << kWeightBits;
constexpr std::int32_t kHalf = 1 << (2 * kWeightBits - 1);

std::int64_t fixed(double value) { return std::llround(std::ldexp(value, kPositionBits)); }

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// A pixel of the source, or the fill colour outside.
const std::uint8_t* tap(const std::uint8_t* source, const Pixels& shape, std::int64_t x, std::int64_t y,
                        const std::uint8_t* fill) {
  return x < 0 || y < 0 || x >= shape.width || y >= shape.height ? fill
                                                                 : source + y * shape.stride() + x * shape.channels;
}

template <int kChannels>
void blend(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d,
           std::int32_t right, std::int32_t down, std::uint8_t* out) {
  for (int i = 0; i < kChannels; ++i) {
    const std::int32_t above = a[i] * (kOne - right) + b[i] * right, below = c[i] * (kOne - right) + d[i] * right;
    out[i] = static_cast<std::uint8_t>((above * (kOne - down) + below * down + kHalf) >> (2 * kWeightBits));
  }
}

template <int kChannels>
void warp(const AffineDraw& drawn, Pixels pixels, const std::uint8_t* source) {
  constexpr std::int64_t kRounding = std::int64_t{1} << (kPositionBits - kWeightBits - 1);
  constexpr int kFraction = kPositionBits - kWeightBits;
  const auto& matrix = drawn.matrix;
  const std::uint8_t* fill = drawn.fill.data();
  const std::ptrdiff_t stride = pixels.stride();
  for (int y = 0; y < pixels.height; ++y) {
    std::int64_t from_x = matrix[1] * y + matrix[2] + kRounding, from_y = matrix[4] * y + matrix[5] + kRounding;
    std::uint8_t* out = pixels.row(y);
    for (int x = 0; x < pixels.width; ++x, from_x += matrix[0], from_y += matrix[3], out += kChannels) {
      const std::int64_t column = from_x >> kPositionBits, row = from_y >> kPositionBits;
      const auto right = static_cast<std::int32_t>(from_x >> kFraction) & (kOne - 1);
      const auto down = static_cast<std::int32_t>(from_y >> kFraction) & (kOne - 1);
      if (column >= 0 && row >= 0 && column < pixels.width - 1 && row < pixels.height - 1) {
        const std::uint8_t* at = source + row * stride + column * kChannels;
        blend<kChannels>(at, at + kChannels, at + stride, at + stride + kChannels, right, down, out);
      } else {
        blend<kChannels>(tap(source, pixels, column, row, fill), tap(source, pixels, column + 1, row, fill),
                         tap(source, pixels, column, row + 1, fill), tap(source, pixels, column + 1, row + 1, fill),
                         right, down, out);
      }
    }
  }
}

}  // namespace

void check(const Affine& affine) {
  const auto within = [](const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high)) {
      fail<ConfigError>("augment.affine", "{} must be {} to {}, got {}", name, low, high, value);
    }
  };
  within("degrees", affine.degrees, 0, 180);
  within("translate_x", affine.translate_x, 0, 1);
  within("translate_y", affine.translate_y, 0, 1);
  within("min_scale", affine.min_scale, 0.05, 20);
  within("max_scale", affine.max_scale, affine.min_scale, 20);
  within("shear_x", affine.shear_x, 0, 80);
  within("shear_y", affine.shear_y, 0, 80);
  within("probability", affine.probability, 0, 1);
}

// torchvision's _get_inverse_affine_matrix about the centre: R(angle) S(scale) SHy(shear_y) SHx(shear_x), inverted.
AffineDraw affine_draw(const Motion& motion, int width, int height, std::array<std::uint8_t, 3> fill) {
  const double angle = radians(motion.angle), shear_y = radians(motion.shear_y);
  const double tan_x = std::tan(radians(motion.shear_x)), cos_y = std::cos(shear_y);
  const double a = std::cos(angle - shear_y) / cos_y, c = std::sin(angle - shear_y) / cos_y;
  const double b = -(a * tan_x + std::sin(angle)), d = std::cos(angle) - c * tan_x;
  const double xx = d / motion.scale, xy = -b / motion.scale, yx = -c / motion.scale, yy = a / motion.scale;
  // The centre of the result minus the translation maps to the centre of the source.
  const double centre_x = (width - 1) / 2.0, centre_y = (height - 1) / 2.0;
  const double x = centre_x + motion.translate_x, y = centre_y + motion.translate_y;
  return {{fixed(xx), fixed(xy), fixed(centre_x - xx * x - xy * y), fixed(yx), fixed(yy),
           fixed(centre_y - yx * x - yy * y)},
          fill};
}

std::optional<AffineDraw> draw(const Affine& affine, int width, int height, const DrawKey& key) {
  CounterRng random = key.random(RandomOp::kAffine);
  const auto either = [&](double most) { return random.uniform(-most, most); };
  const bool wanted = random.uniform() < affine.probability;
  Motion motion;
  motion.angle = either(affine.degrees);
  motion.translate_x = std::nearbyint(either(affine.translate_x * width));  // whole pixels, as in torchvision
  motion.translate_y = std::nearbyint(either(affine.translate_y * height));
  motion.scale = random.uniform(affine.min_scale, affine.max_scale);
  motion.shear_x = either(affine.shear_x);
  motion.shear_y = either(affine.shear_y);
  return wanted ? std::optional(affine_draw(motion, width, height, affine.fill)) : std::nullopt;
}

void execute(const AffineDraw& drawn, Pixels pixels, PixelScratch& scratch) {
  scratch.bytes.assign(pixels.data, pixels.data + pixels.bytes());
  pixels.channels == 1 ? warp<1>(drawn, pixels, scratch.bytes.data()) : warp<3>(drawn, pixels, scratch.bytes.data());
}

}  // namespace stoker::augment

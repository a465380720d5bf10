// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/blur.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"

namespace stoker::augment {
namespace {

constexpr int kWeightBits = 15;
constexpr int kAcrossShift = kWeightBits - 8;  // leaves 16 bits
constexpr int kDownShift = kWeightBits + 8;    // a sum is at most 255 * 2^8 * 2^15: below 2^32
constexpr std::uint32_t kAcrossHalf = 1U << (kAcrossShift - 1), kDownHalf = 1U << (kDownShift - 1);

// Position i of a line of n pixels that is mirrored at both ends without repeating the end pixels.
int mirrored(int i, int n) {
  if (n == 1) {
    return 0;
  }
  const int period = 2 * (n - 1);
  const int place = ((i % period) + period) % period;
  return std::min(place, period - place);
}

// sums = half + the weighted sum of the lines near(-radius) ... near(radius), each `count` long.
template <typename Near>
void add_up(const BlurDraw& drawn, std::ptrdiff_t count, std::uint32_t half, const Near& near, std::uint32_t* sums) {
  const auto* middle = near(0);
  const std::uint32_t most = drawn.weights[0];
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    sums[i] = half + most * middle[i];
  }
  for (int k = 1; k <= drawn.radius; ++k) {
    const std::uint32_t weight = drawn.weights[static_cast<std::size_t>(k)];
    const auto* before = near(-k);
    const auto* after = near(k);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      sums[i] += weight * (static_cast<std::uint32_t>(before[i]) + after[i]);
    }
  }
}

// One line with its mirrored continuation of `radius` pixels on both sides.
void extend(const std::uint8_t* row, int width, int channels, int radius, std::uint8_t* line) {
  const auto copy = [&](int x) {
    line = std::copy_n(row + static_cast<std::ptrdiff_t>(mirrored(x, width)) * channels, channels, line);
  };
  for (int x = -radius; x < 0; ++x) {
    copy(x);
  }
  line = std::copy_n(row, static_cast<std::ptrdiff_t>(width) * channels, line);
  for (int x = width; x < width + radius; ++x) {
    copy(x);
  }
}

}  // namespace

void check(const Blur& blur) {
  if (blur.kernel < 1 || blur.kernel > 2 * BlurDraw::kMaxRadius + 1 || blur.kernel % 2 == 0) {
    fail<ConfigError>("augment.blur", "kernel must be odd and 1 to {}, got {}", 2 * BlurDraw::kMaxRadius + 1,
                      blur.kernel);
  }
  if (!(blur.min_sigma >= 0.01 && blur.min_sigma <= blur.max_sigma && blur.max_sigma <= 100)) {
    fail<ConfigError>("augment.blur", "sigma must be within 0.01 to 100, got {} to {}", blur.min_sigma, blur.max_sigma);
  }
  if (!(blur.probability >= 0 && blur.probability <= 1)) {
    fail<ConfigError>("augment.blur", "probability must be 0 to 1, got {}", blur.probability);
  }
}

BlurDraw blur_draw(int kernel, double sigma) {
  BlurDraw drawn;
  drawn.radius = kernel / 2;
  std::array<double, BlurDraw::kMaxRadius + 1> exact{};
  double total = 0;
  for (int k = 0; k <= drawn.radius; ++k) {
    const double distance = k / sigma;
    exact[static_cast<std::size_t>(k)] = std::exp(-0.5 * distance * distance);
    total += (k == 0 ? 1 : 2) * exact[static_cast<std::size_t>(k)];
  }
  int rest = 1 << kWeightBits;
  for (std::size_t k = 1; k <= static_cast<std::size_t>(drawn.radius); ++k) {
    drawn.weights[k] = static_cast<std::uint16_t>(std::lround(exact[k] / total * (1 << kWeightBits)));
    rest -= 2 * drawn.weights[k];
  }
  drawn.weights[0] = static_cast<std::uint16_t>(rest);
  while (drawn.radius > 0 && drawn.weights[static_cast<std::size_t>(drawn.radius)] == 0) {
    --drawn.radius;  // beyond about four sigma weights are 0
  }
  return drawn;
}

std::optional<BlurDraw> draw(const Blur& blur, const DrawKey& key) {
  CounterRng random = key.random(RandomOp::kBlur);
  const bool wanted = random.uniform() < blur.probability;
  const double sigma = random.uniform(blur.min_sigma, blur.max_sigma);
  return wanted ? std::optional(blur_draw(blur.kernel, sigma)) : std::nullopt;
}

void execute(const BlurDraw& drawn, Pixels pixels, PixelScratch& scratch) {
  const std::ptrdiff_t stride = pixels.stride(), margin = static_cast<std::ptrdiff_t>(drawn.radius) * pixels.channels;
  scratch.bytes.resize(static_cast<std::size_t>(stride + 2 * margin));
  scratch.rows.resize(static_cast<std::size_t>(pixels.bytes()));
  scratch.sums.resize(static_cast<std::size_t>(stride));
  std::uint32_t* sums = scratch.sums.data();
  for (int y = 0; y < pixels.height; ++y) {
    extend(pixels.row(y), pixels.width, pixels.channels, drawn.radius, scratch.bytes.data());
    const std::uint8_t* line = scratch.bytes.data() + margin;
    add_up(
        drawn, stride, kAcrossHalf, [&](int k) { return line + static_cast<std::ptrdiff_t>(k) * pixels.channels; },
        sums);
    std::uint16_t* out = scratch.rows.data() + y * stride;
    for (std::ptrdiff_t i = 0; i < stride; ++i) {
      out[i] = static_cast<std::uint16_t>(sums[i] >> kAcrossShift);
    }
  }
  for (int y = 0; y < pixels.height; ++y) {
    const std::uint16_t* rows = scratch.rows.data();
    add_up(
        drawn, stride, kDownHalf, [&](int k) { return rows + mirrored(y + k, pixels.height) * stride; }, sums);
    std::uint8_t* out = pixels.row(y);
    for (std::ptrdiff_t i = 0; i < stride; ++i) {
      out[i] = static_cast<std::uint8_t>(sums[i] >> kDownShift);
    }
  }
}

}  // namespace stoker::augment

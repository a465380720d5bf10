// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/erase.h"

#include <cmath>

#include "stoker/base/error.h"

namespace stoker::augment {

void check(const Erase& erase) {
  if (!(erase.probability >= 0 && erase.probability <= 1)) {
    fail<ConfigError>("augment.erase", "probability must be 0 to 1, got {}", erase.probability);
  }
  if (!(erase.min_area > 0 && erase.min_area <= erase.max_area && erase.max_area <= 1)) {
    fail<ConfigError>("augment.erase", "area must be above 0 and at most 1, got {} to {}", erase.min_area,
                      erase.max_area);
  }
  if (!(erase.min_ratio > 0 && erase.min_ratio <= erase.max_ratio && erase.max_ratio <= 1000)) {
    fail<ConfigError>("augment.erase", "ratio must be above 0 and at most 1000, got {} to {}", erase.min_ratio,
                      erase.max_ratio);
  }
}

std::optional<EraseDraw> draw(const Erase& erase, int width, int height, const DrawKey& key) {
  CounterRng random = key.random(RandomOp::kErase);
  if (random.uniform() >= erase.probability) {
    return std::nullopt;
  }
  const double area = static_cast<double>(width) * height;
  const double low = std::log(erase.min_ratio), high = std::log(erase.max_ratio);
  for (int i = 0; i < 10; ++i) {
    const double wanted = area * random.uniform(erase.min_area, erase.max_area);
    const double ratio = std::exp(random.uniform(low, high));
    const double h = std::nearbyint(std::sqrt(wanted * ratio)), w = std::nearbyint(std::sqrt(wanted / ratio));
    if (h >= 1 && w >= 1 && h < height && w < width) {
      EraseDraw drawn{.width = static_cast<int>(w), .height = static_cast<int>(h), .value = erase.value};
      drawn.top = static_cast<int>(random.below(static_cast<std::uint32_t>(height - drawn.height + 1)));
      drawn.left = static_cast<int>(random.below(static_cast<std::uint32_t>(width - drawn.width + 1)));
      return drawn;
    }
  }
  return std::nullopt;
}

void execute(const EraseDraw& drawn, Pixels pixels) {
  for (int y = drawn.top; y < drawn.top + drawn.height; ++y) {
    std::uint8_t* out = pixels.row(y) + static_cast<std::ptrdiff_t>(drawn.left) * pixels.channels;
    for (int x = 0; x < drawn.width; ++x) {
      for (int c = 0; c < pixels.channels; ++c) {
        *out++ = drawn.value[static_cast<std::size_t>(c)];
      }
    }
  }
}

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// A random rectangle is painted over, as torchvision's RandomErasing (Zhong et al. 2017). An operation (operation.h).
// Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Erase {
  double probability = 0.5;                       // that it is done
  double min_area = 0.02, max_area = 0.33;        // of the rectangle, as a share of the image's
  double min_ratio = 0.3, max_ratio = 3.3;        // height / width, drawn evenly in its logarithm
  std::array<std::uint8_t, 3> value = {0, 0, 0};  // the paint; the first alone for grey
};

struct EraseDraw {
  int left = 0, top = 0, width = 0, height = 0;
  std::array<std::uint8_t, 3> value{};
  bool operator==(const EraseDraw&) const = default;
};

// ConfigError that names the value that cannot be.
void check(const Erase& erase);
// Empty where nothing is to be done, also where ten rectangles in a row did not fit.
[[nodiscard]] std::optional<EraseDraw> draw(const Erase& erase, int width, int height, const DrawKey& key);
// The rectangle must lie within.
void execute(const EraseDraw& drawn, Pixels pixels);

}  // namespace stoker::augment

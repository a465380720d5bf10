// SPDX-License-Identifier: Apache-2.0
// Paints over a random rectangle, as torchvision's RandomErasing (Zhong et al. 2017). An operation (operation.h).
// Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Erase {
  double probability = 0.5;                       // of applying the operation
  double min_area = 0.02, max_area = 0.33;        // of the rectangle, as a share of the image
  double min_ratio = 0.3, max_ratio = 3.3;        // height / width, drawn log-uniformly
  std::array<std::uint8_t, 3> value = {0, 0, 0};  // colour; only the first for grey
};

struct EraseDraw {
  int left = 0, top = 0, width = 0, height = 0;
  std::array<std::uint8_t, 3> value{};
  bool operator==(const EraseDraw&) const = default;
};

// ConfigError with the name of the value that is out of range.
void check(const Erase& erase);
// Empty if the operation is not applied, also if ten rectangles in a row did not fit.
[[nodiscard]] std::optional<EraseDraw> draw(const Erase& erase, int width, int height, const DrawKey& key);
// The rectangle must be inside the image.
void execute(const EraseDraw& drawn, Pixels pixels);

}  // namespace stoker::augment

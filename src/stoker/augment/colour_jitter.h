// SPDX-License-Identifier: Apache-2.0
// Changes brightness, contrast, saturation and hue in random order, as torchvision's ColorJitter. An operation
// (operation.h). Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

// 0 turns a change off; if all are 0 nothing is drawn.
struct ColourJitter {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from max(0, 1 - value) to 1 + value; 0 ... 10
  double hue = 0;                                       // turns, in both directions; 0 ... 0.5
  double probability = 1;                               // of applying the operation
};

enum class Adjust : std::uint8_t { kBrightness, kContrast, kSaturation, kHue };

// One change. amount: a factor in units of 2^-16, at most 11; for hue a turn in sixths, in units of 2^-16.
struct ColourStep {
  Adjust what = Adjust::kBrightness;
  std::int32_t amount = 0;
  bool operator==(const ColourStep&) const = default;
};

// The first `count` steps are valid, in this order.
struct ColourDraw {
  std::array<ColourStep, 4> steps{};
  int count = 0;
  bool operator==(const ColourDraw&) const = default;
};

// ConfigError with the name of the value that is out of range.
void check(const ColourJitter& jitter);
// amount: a factor, or for hue a share of a turn (torchvision's hue_factor).
[[nodiscard]] ColourStep colour_step(Adjust what, double value);
// Empty if the operation is not applied.
[[nodiscard]] std::optional<ColourDraw> draw(const ColourJitter& jitter, const DrawKey& key);
// Each step as torchvision's adjust_*, with the same truncation. Saturation and hue do not change one-channel images.
void execute(const ColourDraw& drawn, Pixels pixels);

}  // namespace stoker::augment

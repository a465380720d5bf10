// SPDX-License-Identifier: Apache-2.0
// Brightness, contrast, saturation and hue, changed in a drawn order, as torchvision's ColorJitter. An operation
// (operation.h). Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

// 0 leaves that one alone; with all at 0 nothing is drawn.
struct ColourJitter {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from max(0, 1 - value) to 1 + value; 0 ... 10
  double hue = 0;                                       // turns to either side; 0 ... 0.5
  double probability = 1;                               // that anything is done
};

enum class Adjust : std::uint8_t { kBrightness, kContrast, kSaturation, kHue };

// One change. amount: a factor in 2^-16, at most 11; of the hue a turn in sixths of 2^-16.
struct ColourStep {
  Adjust what = Adjust::kBrightness;
  std::int32_t amount = 0;
  bool operator==(const ColourStep&) const = default;
};

// The first `count` steps, in this order.
struct ColourDraw {
  std::array<ColourStep, 4> steps{};
  int count = 0;
  bool operator==(const ColourDraw&) const = default;
};

// ConfigError that names the value that cannot be.
void check(const ColourJitter& jitter);
// By a factor, or of the hue a share of a turn (torchvision's hue_factor).
[[nodiscard]] ColourStep colour_step(Adjust what, double value);
// Empty where nothing is to be done.
[[nodiscard]] std::optional<ColourDraw> draw(const ColourJitter& jitter, const DrawKey& key);
// Each step as torchvision's adjust_*, fractions cut off as there. An image of one channel has no saturation or hue.
void execute(const ColourDraw& drawn, Pixels pixels);

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// Gaussian blur as in torchvision's GaussianBlur. An operation (operation.h). Thread-safe if every thread has its own
// scratch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Blur {
  int kernel = 23;                        // pixels per side, odd; 1 ... 63
  double min_sigma = 0.1, max_sigma = 2;  // pixels, drawn uniformly from this range; 0.01 ... 100
  double probability = 1;                 // of applying the operation
};

// The weights of a pixel and of its neighbours 1, 2, ... radius pixels away on both sides. Their sum, with neighbours
// counted twice, is exactly 2^15, so that a uniform colour stays unchanged.
struct BlurDraw {
  static constexpr int kMaxRadius = 31;
  int radius = 0;
  std::array<std::uint16_t, kMaxRadius + 1> weights{};
  bool operator==(const BlurDraw&) const = default;
};

// ConfigError with the name of the value that is out of range.
void check(const Blur& blur);
[[nodiscard]] BlurDraw blur_draw(int kernel, double sigma);
// Empty if the operation is not applied.
[[nodiscard]] std::optional<BlurDraw> draw(const Blur& blur, const DrawKey& key);
// First rows, then columns, with 8 more bits per pixel in between. Outside its edge the image is mirrored without
// repeating the edge pixels (torch's "reflect"). Unlike in torch, the image may be smaller than the kernel; then it is
// mirrored again.
void execute(const BlurDraw& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

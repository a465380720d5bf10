// SPDX-License-Identifier: Apache-2.0
// Gaussian blur, as torchvision's GaussianBlur. An operation (operation.h). Thread-safe as long as every thread has a
// scratch of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

struct Blur {
  int kernel = 23;                        // pixels a side, odd; 1 ... 63
  double min_sigma = 0.1, max_sigma = 2;  // pixels, drawn evenly between them; 0.01 ... 100
  double probability = 1;                 // that it is done
};

// The weights of a pixel and of its neighbours 1, 2, ... radius pixels away to either side; together, each neighbour
// counted twice, exactly 2^15, so that a plain colour stays what it is.
struct BlurDraw {
  static constexpr int kMaxRadius = 31;
  int radius = 0;
  std::array<std::uint16_t, kMaxRadius + 1> weights{};
  bool operator==(const BlurDraw&) const = default;
};

// ConfigError that names the value that cannot be.
void check(const Blur& blur);
[[nodiscard]] BlurDraw blur_draw(int kernel, double sigma);
// Empty where nothing is to be done.
[[nodiscard]] std::optional<BlurDraw> draw(const Blur& blur, const DrawKey& key);
// Across, then down; between them a pixel has 8 more bits. Beyond the edge the image goes on mirrored, the edge's
// own pixels once (torch's "reflect"); unlike there the image may be smaller than the kernel, and is mirrored again.
void execute(const BlurDraw& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

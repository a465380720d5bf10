// SPDX-License-Identifier: Apache-2.0
// Rotation, translation, scale and shear about the centre of the image, bilinear, as in torchvision's RandomAffine and
// affine. An operation (operation.h). Thread-safe if every thread has its own scratch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

// Each value is drawn uniformly from its range; the defaults change nothing.
struct Affine {
  double degrees = 0;                            // of rotation, in both directions; 0 ... 180
  double translate_x = 0, translate_y = 0;       // in both directions, as a share of width and height; 0 ... 1
  double min_scale = 1, max_scale = 1;           // 0.05 ... 20
  double shear_x = 0, shear_y = 0;               // degrees, in both directions; 0 ... 80
  double probability = 1;                        // of applying the operation
  std::array<std::uint8_t, 3> fill = {0, 0, 0};  // colour outside the image; only the first for grey
};

// One motion as in torchvision.transforms.v2.functional.affine: degrees clockwise, pixels, factor, degrees.
struct Motion {
  double angle = 0, translate_x = 0, translate_y = 0, scale = 1, shear_x = 0, shear_y = 0;
};

// The source position of pixel (x, y) of the result, in units of 2^-32 pixels: column matrix[0] x + matrix[1] y +
// matrix[2], row matrix[3] x + matrix[4] y + matrix[5]; whole numbers are the centres of pixels.
struct AffineDraw {
  std::array<std::int64_t, 6> matrix{};
  std::array<std::uint8_t, 3> fill{};
  bool operator==(const AffineDraw&) const = default;
};

// ConfigError with the name of the value that is out of range.
void check(const Affine& affine);
[[nodiscard]] AffineDraw affine_draw(const Motion& motion, int width, int height, std::array<std::uint8_t, 3> fill);
// Empty if the operation is not applied.
[[nodiscard]] std::optional<AffineDraw> draw(const Affine& affine, int width, int height, const DrawKey& key);
// Positions are rounded to 2^-11 of a pixel: two 11-bit weights and 8 bits of pixel fill an int32. Outside the image,
// and for neighbours outside its edge, the fill colour is used.
void execute(const AffineDraw& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

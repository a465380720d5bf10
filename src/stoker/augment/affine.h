// SPDX-License-Identifier: Apache-2.0
// Rotation, translation, scale and shear about the image's centre, bilinear, as torchvision's RandomAffine and affine
// have them. An operation (operation.h). Thread-safe as long as every thread has a scratch of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "stoker/augment/draw_key.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

// Each value is drawn evenly within what is allowed; the defaults change nothing.
struct Affine {
  double degrees = 0;                            // of rotation, to either side; 0 ... 180
  double translate_x = 0, translate_y = 0;       // to either side, as a share of width and height; 0 ... 1
  double min_scale = 1, max_scale = 1;           // 0.05 ... 20
  double shear_x = 0, shear_y = 0;               // degrees to either side; 0 ... 80
  double probability = 1;                        // that anything is done
  std::array<std::uint8_t, 3> fill = {0, 0, 0};  // what lies outside the image; the first alone for grey
};

// One motion, in torchvision.transforms.v2.functional.affine's terms: degrees clockwise, pixels, factor, degrees.
struct Motion {
  double angle = 0, translate_x = 0, translate_y = 0, scale = 1, shear_x = 0, shear_y = 0;
};

// Where the pixel (x, y) of the result comes from, in pixels of 2^-32: column matrix[0] x + matrix[1] y + matrix[2],
// row matrix[3] x + matrix[4] y + matrix[5]; whole numbers are pixels' centres.
struct AffineDraw {
  std::array<std::int64_t, 6> matrix{};
  std::array<std::uint8_t, 3> fill{};
  bool operator==(const AffineDraw&) const = default;
};

// ConfigError that names the value that cannot be.
void check(const Affine& affine);
[[nodiscard]] AffineDraw affine_draw(const Motion& motion, int width, int height, std::array<std::uint8_t, 3> fill);
// Empty where nothing is to be done.
[[nodiscard]] std::optional<AffineDraw> draw(const Affine& affine, int width, int height, const DrawKey& key);
// Positions are rounded to 2^-11 of a pixel: two 11-bit weights and 8 bits of pixel fill an int32. Outside the image
// is the fill colour, also for the neighbours that a pixel at its edge is mixed of.
void execute(const AffineDraw& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

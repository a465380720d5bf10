// SPDX-License-Identifier: Apache-2.0
// A list of operations on one image: first each draws its parameters, as plain structs that any backend can carry
// out; then they are executed, in place, one after the other. Used by ImagePolicy, after the crop and the flip.
// Thread-safe as long as every thread has a scratch of its own.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <variant>

#include "stoker/augment/affine.h"
#include "stoker/augment/blur.h"
#include "stoker/augment/colour_jitter.h"
#include "stoker/augment/draw_key.h"
#include "stoker/augment/erase.h"
#include "stoker/augment/grey.h"
#include "stoker/augment/pixels.h"

namespace stoker::augment {

// A new kind of operation: a file like affine.h, a line in both variants, a RandomOp of its own.
using Operation = std::variant<Affine, ColourJitter, Grey, Blur, Erase>;
using DrawnOperation = std::variant<std::monostate, AffineDraw, ColourDraw, GreyDraw, BlurDraw, EraseDraw>;

// What was drawn for one image: the first `count`, in this order. No memory of its own: it lives with its sample.
struct DrawnOperations {
  static constexpr std::size_t kMost = std::variant_size_v<Operation>;  // every kind once
  std::array<DrawnOperation, kMost> list;  // of nothing: no {}, which would set all of its 400 bytes to zero
  std::size_t count = 0;
  bool operator==(const DrawnOperations&) const = default;
};

// ConfigError for a value that cannot be, and for two operations of one kind: they would draw the same numbers.
void check(std::span<const Operation> operations);
// For an image of that size; what is left to chance may leave operations out.
[[nodiscard]] DrawnOperations draw(std::span<const Operation> operations, int width, int height, const DrawKey& key);
void execute(const DrawnOperations& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// A list of operations on one image: first each draws its parameters, as plain structs that any backend can execute;
// then they are executed in place, one after the other. Used by ImagePolicy after crop and flip. Thread-safe if every
// thread has its own scratch.
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

// To add an operation: a file like affine.h, a line in both variants, and its own RandomOp.
using Operation = std::variant<Affine, ColourJitter, Grey, Blur, Erase>;
using DrawnOperation = std::variant<std::monostate, AffineDraw, ColourDraw, GreyDraw, BlurDraw, EraseDraw>;

// The drawn operations of one image: the first `count` entries, in this order. Allocates no memory.
struct DrawnOperations {
  static constexpr std::size_t kMost = std::variant_size_v<Operation>;  // every kind once
  std::array<DrawnOperation, kMost> list;  // uninitialised on purpose: {} would set all of its 400 bytes to zero
  std::size_t count = 0;
  bool operator==(const DrawnOperations&) const = default;
};

// ConfigError for a value out of range, and for two operations of one kind, which would draw the same numbers.
void check(std::span<const Operation> operations);
// For an image of that size; operations with a probability below 1 may be left out.
[[nodiscard]] DrawnOperations draw(std::span<const Operation> operations, int width, int height, const DrawKey& key);
void execute(const DrawnOperations& drawn, Pixels pixels, PixelScratch& scratch);

}  // namespace stoker::augment

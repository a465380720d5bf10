// SPDX-License-Identifier: Apache-2.0
// MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019) on the rows of a finished batch: every row is mixed with a
// partner. Rows are mixed inside blocks, so that ranks and threads need only their own rows and get the same result.
// Used by data::ImageLoader. Thread-safe if every thread has its own block and scratch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/augment/pixels.h"

namespace stoker::augment {

// With both on, every block uses one of them with probability 1/2.
struct Mix {
  static constexpr int kMostRows = 256;
  double mixup = 0;   // alpha of Beta(alpha, alpha) for the share; 0: off, else 0.001 ... 1000
  double cutmix = 0;  // the same for CutMix
  int block = 16;     // rows that are mixed with each other; 2 ... kMostRows, must divide the batch slice of every rank

  [[nodiscard]] bool on() const { return mixup > 0 || cutmix > 0; }
};

// ConfigError with the name of the value that is out of range. slice: rows per rank in a whole batch.
void check(const Mix& mix, std::int64_t slice);
// The default: the largest block up to 16 rows that divides a global batch, else the smallest above; 1 if there is
// none. It does not depend on the number of ranks, since the pairs of rows must not depend on it.
[[nodiscard]] int mix_block(std::int64_t batch);

// Identifies a block by its place in the global batch, independent of the number of ranks.
struct MixKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t step = 0;
  std::uint32_t block = 0;  // number in the global batch
};

// The drawn parameters for a block of rows.
struct BlockDraw {
  std::uint32_t share = kWhole;  // share of a row's own pixels; the rest comes from its partner
  bool cut = false;              // CutMix: the rectangle comes from the partner; else all pixels are a weighted mean
  int left = 0, top = 0, right = 0, bottom = 0;
  int rows = 0;
  std::array<std::uint8_t, Mix::kMostRows> partner{};  // per row; partners form one cycle, so no row is its own partner

  static constexpr std::uint32_t kWhole = 1 << 16;
  [[nodiscard]] float own_share() const { return static_cast<float>(share) / kWhole; }  // exact
  bool operator==(const BlockDraw&) const = default;
};

// width, height: of the images. The rectangle is as in torchvision: half sides are rounded down, it is clipped to the
// image, and share is the rest.
[[nodiscard]] BlockDraw draw(const Mix& mix, int width, int height, const MixKey& key);
// first: the first row of the block; the others follow without gaps, with images of the same size. Works in place: only
// the row that starts the cycle is copied. A mean is rounded to the nearest, halves up.
void execute(const BlockDraw& drawn, Pixels first, std::vector<std::uint8_t>& scratch);

}  // namespace stoker::augment

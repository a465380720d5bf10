// SPDX-License-Identifier: Apache-2.0
// MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019) on the rows of a finished batch: every row is mixed with a
// partner's. Rows are mixed inside blocks, so that ranks and threads need only their own rows and agree on the result.
// Used by data::ImageLoader. Thread-safe as long as every thread has its own block and scratch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/augment/pixels.h"

namespace stoker::augment {

// With both on, every block takes one of them by the toss of a coin.
struct Mix {
  static constexpr int kMostRows = 256;
  double mixup = 0;   // alpha of the share's Beta(alpha, alpha); 0: off, else 0.001 ... 1000
  double cutmix = 0;  // the same
  int block = 16;     // rows that are mixed with each other; 2 ... kMostRows, divides every rank's slice of a batch

  [[nodiscard]] bool on() const { return mixup > 0 || cutmix > 0; }
};

// ConfigError that names the value that cannot be. slice: rows of a rank in a whole batch.
void check(const Mix& mix, std::int64_t slice);
// The default: the largest block up to 16 rows that divides a global batch, else the smallest above; 1 if there is
// none. It does not ask for the ranks, since what is mixed with what must not depend on them.
[[nodiscard]] int mix_block(std::int64_t batch);

// Which block: a function of its place in the global batch alone, so the number of ranks does not matter.
struct MixKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t step = 0;
  std::uint32_t block = 0;  // of the global batch
};

// What was drawn for a block of rows.
struct BlockDraw {
  std::uint32_t share = kWhole;  // of a row's own pixels; the rest is its partner's
  bool cut = false;              // CutMix: the rectangle is the partner's; else all pixels are a mean by share
  int left = 0, top = 0, right = 0, bottom = 0;
  int rows = 0;
  std::array<std::uint8_t, Mix::kMostRows> partner{};  // of each row; they make one cycle, so nobody is his own

  static constexpr std::uint32_t kWhole = 1 << 16;
  [[nodiscard]] float own_share() const { return static_cast<float>(share) / kWhole; }  // exact
  bool operator==(const BlockDraw&) const = default;
};

// width, height: of the rows' images. The rectangle is torchvision's: its half sides are rounded down, it is cut at
// the image's edges, and share is what it leaves.
[[nodiscard]] BlockDraw draw(const Mix& mix, int width, int height, const MixKey& key);
// first: the first row of the block; the others follow without gaps, each an image like it. In place: only one row is
// copied, the one that the cycle begins with. A mean is rounded to the nearest, halves up.
void execute(const BlockDraw& drawn, Pixels first, std::vector<std::uint8_t>& scratch);

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// Batches of windows of a long token sequence, each with its next tokens as targets, for training a language model.
// Order and position follow promise 1, as in the image loader. One consumer at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/data/order/sampler.h"

namespace stoker::data {

struct TokenWindowsOptions {
  at::Tensor tokens;         // int32 [N] on the CPU, N at least 2
  std::int64_t context = 0;  // tokens per window, T
  std::int64_t batch = 1;    // global: windows over all ranks
  std::uint64_t seed = 0;
  bool train = true;    // false: every token once, in order; the last window is padded with targets of -100
  bool shuffle = true;  // in training; false: windows in order, the same in every epoch except for the shift
  bool drop_tail = false;
  core::Position start;  // first batch to hand out
  int rank = 0;
  int ranks = 1;
};

// Windows per epoch: in training the number that fits for every shift, at least 1; else all.
[[nodiscard]] std::int64_t window_count(std::int64_t tokens, std::int64_t context, bool train);

// Batches of "ids" int64 [B, T] and "target" int64 [B, T], the next tokens. Window i begins at token i * T + shift. In
// training a new shift is drawn each epoch from 0 ... T - 1 (less if the text is short), so that no token always begins
// a window. Up to T - 1 tokens at the end, which no window reaches with the largest shift, are not trained on.
class TokenWindows final : public core::BatchSource {
 public:
  // DataError in training for fewer than T + 1 tokens.
  explicit TokenWindows(TokenWindowsOptions options);

  [[nodiscard]] std::optional<core::Batch> next() override;
  // The shift of an epoch.
  [[nodiscard]] std::int64_t shift(std::int64_t epoch) const;

 private:
  TokenWindowsOptions options_;
  Sampler sampler_;
  core::Position position_;
  std::vector<std::int64_t> windows_;  // of the current batch
};

}  // namespace stoker::data

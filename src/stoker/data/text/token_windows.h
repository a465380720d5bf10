// SPDX-License-Identifier: Apache-2.0
// A long row of tokens as batches of windows, each with the tokens that follow: what a language model learns from.
// Order and position follow promise 1, as the image loader's. One consumer at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/data/order/sampler.h"

namespace stoker::data {

struct TokenWindowsOptions {
  at::Tensor tokens;         // int32 [N] on the CPU, N at least 2
  std::int64_t context = 0;  // tokens a window, T
  std::int64_t batch = 1;    // global: windows over all ranks
  std::uint64_t seed = 0;
  bool train = true;    // false: every token once, in order, the last window filled up with targets of -100
  bool shuffle = true;  // in training; false: windows in order, the same every epoch but for their shift
  bool drop_tail = false;
  core::Position start;  // the first batch to hand out
  int rank = 0;
  int ranks = 1;
};

// Windows of an epoch: in training those that fit behind any of the shifts, at least 1; else all.
[[nodiscard]] std::int64_t window_count(std::int64_t tokens, std::int64_t context, bool train);

// Batches of "ids" int64 [B, T] and "target" int64 [B, T], the tokens one further on. Window i begins at token
// i * T + shift; in training shift is drawn anew each epoch from 0 ... T - 1 (less where the text is short), so that no
// token always begins a window. What no window reaches behind the largest shift, up to T - 1 tokens, is not trained on.
class TokenWindows final : public core::BatchSource {
 public:
  // DataError, in training, for fewer than T + 1 tokens.
  explicit TokenWindows(TokenWindowsOptions options);

  [[nodiscard]] std::optional<core::Batch> next() override;
  // Where the windows of an epoch begin.
  [[nodiscard]] std::int64_t shift(std::int64_t epoch) const;

 private:
  TokenWindowsOptions options_;
  Sampler sampler_;
  core::Position position_;
  std::vector<std::int64_t> windows_;  // of the batch that is being made
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// GPT-2's network (Radford et al., 2019): a causal transformer with tied embeddings, under the names and in the layout
// of the published weights, so that files go both ways without a change. Made by tasks/.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/models/network.h"
#include "stoker/ops/attention.h"

namespace stoker::models {

struct GptOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 64;  // tokens that it can look back on
  int layers = 4;
  int heads = 4;
  std::int64_t width = 128;  // a multiple of heads
  double dropout = 0;
  // Leave the product with the vocabulary to the loss, which can do it in pieces: the output is then {hidden [N, T,
  // width], the table [vocabulary, width]} instead of {logits [N, T, vocabulary]}.
  bool open_head = false;
  ops::AttentionKind attention = ops::AttentionKind::kFused;  // the other one is there to be measured
  std::uint64_t seed = 0;
};

// Input: tokens int64 [N, T], T up to context. A segment for the embeddings, one a block, one for the last norm and the
// head. Weights normal with deviation 0.02, those that write into the residual stream 0.02 / sqrt(2 layers), section
// 2.3 of the paper. Reads GPT-2's files with and without "transformer." before the names; their masks and the copy of
// the tied table are passed over. ConfigError for sizes that make no network.
[[nodiscard]] std::unique_ptr<Network> make_gpt(const GptOptions& options);

// Floating-point operations of one window of context tokens, forward: 2 per multiply-add of the products with weights,
// and of attention as if it were not causal.
[[nodiscard]] std::int64_t gpt_flops(const GptOptions& options);

}  // namespace stoker::models

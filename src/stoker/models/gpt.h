// SPDX-License-Identifier: Apache-2.0
// GPT-2's network (Radford et al., 2019): a causal transformer with tied embeddings, with the names and memory layout
// of the published weights, so that files can be exchanged without conversion. Made by tasks/.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/models/network.h"
#include "stoker/ops/attention.h"

namespace stoker::models {

struct GptOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 64;  // number of tokens that it can see
  int layers = 4;
  int heads = 4;
  std::int64_t width = 128;  // a multiple of heads
  double dropout = 0;
  // Leave the product with the vocabulary to the loss, which can compute it in chunks: the output is then {hidden [N,
  // T, width], the table [vocabulary, width]} instead of {logits [N, T, vocabulary]}.
  bool open_head = false;
  ops::AttentionKind attention = ops::AttentionKind::kFused;  // the other one is for measurements
  std::uint64_t seed = 0;
};

// Input: tokens int64 [N, T], T up to context. One segment for the embeddings, one per block, one for the last norm and
// the head. Weights normal with deviation 0.02, those that write into the residual stream 0.02 / sqrt(2 layers),
// section 2.3 of the paper. Reads GPT-2's files with and without "transformer." before the names; their masks and the
// copy of the tied table are ignored. ConfigError for invalid sizes.
[[nodiscard]] std::unique_ptr<Network> make_gpt(const GptOptions& options);

// Floating-point operations of one window of context tokens, forward: 2 per multiply-add of the products with weights,
// and of attention as if it were not causal.
[[nodiscard]] std::int64_t gpt_flops(const GptOptions& options);

}  // namespace stoker::models

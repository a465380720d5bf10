// SPDX-License-Identifier: Apache-2.0
// BERT's network (Devlin et al., 2018): a transformer in which every token sees every other, with the names and memory
// layout of HuggingFace's BertForMaskedLM and BertForSequenceClassification, so that files can be exchanged without
// conversion. Made by study/ and by programs.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/models/network.h"
#include "stoker/ops/attention.h"

namespace stoker::models {

struct EncoderOptions {
  std::int64_t vocabulary = 256;
  std::int64_t context = 64;  // maximum number of tokens per row
  int types = 2;              // kinds of parts of a row: BERT's first and second sentence
  int layers = 4;
  int heads = 4;
  std::int64_t width = 128;  // a multiple of heads
  std::int64_t inner = 0;    // width of a block's feed-forward part; 0: 4 * width
  // 0: the head predicts tokens (masked language model); else it classifies a row by its first token.
  int classes = 0;
  double dropout = 0;  // BERT's 0.1; above 0 ATen has no flash attention on the CPU
  ops::AttentionKind attention = ops::AttentionKind::kFused;  // the other one is for measurements
  std::uint64_t seed = 0;
};

// Inputs: tokens int64 [N, T], T up to context; optionally seen [N, T], bool or integers, 0 for padding (undefined or
// omitted: no padding), and types int64 [N, T] (omitted: all 0). Output: logits [N, T, vocabulary], or [N, classes].
// Values at padded positions do not change the logits of the others; each row needs a token. One segment for the
// embeddings, one per block, one for the head; between them pass {hidden [N, T, width]} and, with padding, the mask
// bool [N, 1, 1, T]. The parts of a block are attention.project, attention.heads (the softmax over tokens and the
// product after it), attention.norm, mlp.up, mlp.gelu (with the product after it) and mlp.norm. Norms come after each
// sum, with BERT's eps of 1e-12; GELU is the exact one; the decoder is the table of the tokens. Weights normal with
// deviation 0.02, biases 0. Reads files with and without "bert." before the names and with the early names gamma and
// beta for norms; tensors of other heads are ignored. ConfigError for invalid sizes, DataError for inputs that do not
// fit.
[[nodiscard]] std::unique_ptr<Network> make_encoder(const EncoderOptions& options);

// Floating-point operations of one row of context tokens, forward: 2 per multiply-add of the products with weights and
// of attention.
[[nodiscard]] std::int64_t encoder_flops(const EncoderOptions& options);

}  // namespace stoker::models

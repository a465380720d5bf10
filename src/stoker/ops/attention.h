// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, by ATen's fused operator or written out. Called by models/; study/ measures one against
// the other. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::ops {

enum class AttentionKind {
  kFused,    // one operator; the [queries, keys] scores never exist where a flash kernel takes the inputs
  kWritten,  // two products and a softmax: the plain twin, and what the fused one is measured against
};

struct AttentionOptions {
  bool causal = false;  // query i sees keys 0 ... i
  // Of the softmax's weights, in [0, 1): set it in training only. On the CPU it costs the flash kernel.
  double dropout = 0;
  AttentionKind kind = AttentionKind::kFused;
};

// softmax(query key^T / sqrt(D) + mask) value: Vaswani et al., "Attention Is All You Need" (2017), equation 1. query
// [N, H, T, D], key and value [N, H, S, D], floating and of one dtype → [N, H, T, D]. mask: bool, true where a query
// sees a key, or floating and added to the scores, of the query's dtype; it broadcasts to [N, H, T, S]; undefined for
// none. Both kinds give the same values and gradients but for rounding, dropout's draws, and queries that see no key:
// zeros from kFused, NaN from kWritten. Under autocast both run in its dtype. ConfigError for a mask beside causal, and
// for dropout out of range.
[[nodiscard]] at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const at::Tensor& mask = {}, const AttentionOptions& options = {});

}  // namespace stoker::ops

// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, with ATen's fused operator or with separate operators. Called by models/; study/
// compares both. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::ops {

enum class AttentionKind {
  kFused,    // one operator; a flash kernel, if it supports the inputs, never stores the [queries, keys] scores
  kWritten,  // two products and a softmax: the plain version, for comparison
};

struct AttentionOptions {
  bool causal = false;  // query i sees keys 0 ... i
  // Dropout of the softmax weights, in [0, 1): only set it in training. On the CPU it prevents the flash kernel.
  double dropout = 0;
  AttentionKind kind = AttentionKind::kFused;
};

// softmax(query key^T / sqrt(D) + mask) value: Vaswani et al., "Attention Is All You Need" (2017), equation 1. query
// [N, H, T, D], key and value [N, H, S, D], floating with one dtype → [N, H, T, D]. mask: bool, true if a query sees a
// key, or floating with the dtype of query and added to the scores; broadcasts to [N, H, T, S]; undefined for none.
// Both kinds give the same values and gradients except for rounding, dropout draws, and queries that see no key: zeros
// from kFused, NaN from kWritten. Under autocast both run in its dtype. ConfigError for a mask together with causal,
// and for dropout out of range.
[[nodiscard]] at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const at::Tensor& mask = {}, const AttentionOptions& options = {});

}  // namespace stoker::ops

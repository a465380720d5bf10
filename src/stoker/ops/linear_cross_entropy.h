// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of a product with a large table, computed in pieces, so that the logits of a whole batch, the largest
// tensor in a step of a language model, are never stored. Called by tasks/. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stoker::ops {

// hidden [N, D] and table [V, D] floating, target int64 [N] in 0 ... V-1, or -100 for ignored rows → 0-dim sum, equal
// to cross_entropy_sum(linear(hidden, table), target). rows: rows of hidden at a time, at least 1; memory is rows * V
// logits. The forward pass also computes the gradients, since they need the same logits, so backward costs nothing;
// first derivatives only. Under autocast the products run in its dtype, the rest in float32. ConfigError, DataError for
// wrong shapes and dtypes.
[[nodiscard]] at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& table,
                                                  const at::Tensor& target, std::int64_t rows);

}  // namespace stoker::ops

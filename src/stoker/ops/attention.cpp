// SPDX-License-Identifier: Apache-2.0
#include "stoker/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <limits>
#include <optional>

#include "stoker/base/error.h"

namespace stoker::ops {
namespace {

constexpr std::string_view kWhere = "ops.attention";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor written_out(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                       const AttentionOptions& options) {
  at::Tensor scores = at::matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(query.size(-1)));
  if (options.causal) {
    const at::Tensor seen = at::ones({query.size(-2), key.size(-2)}, query.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), -kInfinity);
  } else if (mask.defined() && mask.scalar_type() == at::kBool) {
    scores = scores.masked_fill(mask.logical_not(), -kInfinity);
  } else if (mask.defined()) {
    scores = scores + mask;
  }
  const at::Tensor weights = scores.softmax(-1);
  return at::matmul(options.dropout > 0 ? at::dropout(weights, options.dropout, /*train=*/true) : weights, value);
}

}  // namespace

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& mask,
                     const AttentionOptions& options) {
  if (options.causal && mask.defined()) {
    fail<ConfigError>(kWhere, "a mask cannot be combined with causal; include the causal mask in the mask");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    fail<ConfigError>(kWhere, "dropout must be at least 0 and below 1, got {}", options.dropout);
  }
  if (options.kind == AttentionKind::kWritten) {
    return written_out(query, key, value, mask, options);
  }
  return at::scaled_dot_product_attention(query, key, value, mask.defined() ? std::optional(mask) : std::nullopt,
                                          options.dropout, options.causal);
}

}  // namespace stoker::ops

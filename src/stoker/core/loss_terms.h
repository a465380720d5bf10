// SPDX-License-Identifier: Apache-2.0
// A loss as a list of terms that are sums, so that it can be computed in parts with the same result.
//
// Each term k has a weight w_k, a sum S_k over the samples (tokens, pixels, matched boxes) of a microbatch, and a
// normaliser N_k that depends only on the targets of the whole global batch. The loss is sum_k w_k * S_k / N_k; the
// gradients of its microbatches add up to those of the full batch for every split. Used by Trainable and train::Step.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stoker::core {

struct LossTerm {
  std::string name;   // as shown to people, e.g. "cross_entropy"
  double weight = 1;  // w_k
  at::Tensor sum;     // S_k, 0-dim, floating point, differentiable
};
using LossTerms = std::vector<LossTerm>;

// One normaliser N_k per term, in the order of the terms: 1-dim, float64, on the batch's device. They are sums over
// samples, so normalisers of slices (of ranks) add up. A term without counted elements has normaliser 0 and contributes
// 0.
using Normalisers = at::Tensor;

// Backward starts from the sums, so that the loss adds nothing to the graph: the gradient of sum_k w_k * S_k / N_k for
// S_k is w_k / N_k.
struct NormalisedLoss {
  std::vector<at::Tensor> sums;  // S_k of the terms that depend on a parameter; of all terms if no term depends on one
  std::vector<at::Tensor> gradients;  // scale * w_k / N_k of these terms, 0-dim, in the dtype of the sum
  at::Tensor parts;                   // w_k * S_k / N_k of every term, 1-dim float64: what the step reports
};

// scale: 0-dim, on the terms' device, of a gradient scaler; undefined: 1. Allocates only on the device, never waits.
// ConfigError if there are not as many normalisers as terms.
[[nodiscard]] NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers,
                                       const at::Tensor& scale = {});

}  // namespace stoker::core

// SPDX-License-Identifier: Apache-2.0
// A loss as a list of terms that are sums, so that it can be computed piece by piece and come out the same.
//
// Each term k has a weight w_k, a sum S_k over the samples (tokens, pixels, matched boxes) of a microbatch, and a
// normaliser N_k that depends on the targets of the whole global batch alone. The loss is sum_k w_k * S_k / N_k; the
// gradients of its microbatches add up to the full batch's, whatever the cut. Used by Trainable and train::Step.
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

// One normaliser N_k per term, in the order of the terms: 1-dim, float64, on the batch's device. Being sums over
// samples, normalisers of slices (of ranks) add up. A term without any counted element has normaliser 0 and counts 0.
using Normalisers = at::Tensor;

// Backward starts from the sums themselves, so that the loss costs the graph nothing: the gradient of
// sum_k w_k * S_k / N_k for S_k is w_k / N_k.
struct NormalisedLoss {
  std::vector<at::Tensor> sums;       // S_k of the terms that depend on a parameter; of all if none does
  std::vector<at::Tensor> gradients;  // scale * w_k / N_k of these, 0-dim, in the dtype of the sum
  at::Tensor parts;                   // w_k * S_k / N_k of every term, 1-dim float64: what the step reports
};

// scale: 0-dim, on the terms' device, of a gradient scaler; undefined: 1. Allocates only on the device, never waits.
// ConfigError if the numbers of terms and normalisers differ.
[[nodiscard]] NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers,
                                       const at::Tensor& scale = {});

}  // namespace stoker::core

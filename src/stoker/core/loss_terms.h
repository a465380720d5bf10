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

struct NormalisedLoss {
  at::Tensor total;  // sum_k w_k * S_k / N_k, 0-dim float64, ready for backward
  at::Tensor parts;  // w_k * S_k / N_k of each term, 1-dim, detached: what the step reports
};

// Allocates only on the device, never waits. ConfigError if the numbers of terms and normalisers differ.
[[nodiscard]] NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers);

}  // namespace stoker::core

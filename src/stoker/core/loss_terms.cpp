// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/stack.h>

#include "stoker/base/error.h"

namespace stoker::core {

NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers) {
  if (static_cast<std::int64_t>(terms.size()) != normalisers.numel()) {
    fail<ConfigError>("core.loss_terms", "{} loss terms came with {} normalisers", terms.size(), normalisers.numel());
  }
  std::vector<at::Tensor> weighted;
  weighted.reserve(terms.size());
  for (const LossTerm& term : terms) {
    weighted.push_back(term.weight == 1 ? term.sum : term.sum * term.weight);
  }
  // float64 costs nothing on a handful of numbers, and the division then rounds once. A sum without any counted element
  // is 0, and so must its quotient be.
  const at::Tensor parts = at::stack(weighted).to(at::kDouble) / normalisers.clamp_min(1e-300);
  return {parts.sum(), parts.detach()};
}

}  // namespace stoker::core

// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

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
  // float64 costs nothing on a handful of numbers, and the division then rounds once. Without any counted element the
  // term is 0, though its sum need not be (label smoothing spreads over classes that nobody has).
  const at::Tensor sums = at::stack(weighted).to(at::kDouble);
  const at::Tensor counted = normalisers > 0;
  const at::Tensor quotients = sums / at::where(counted, normalisers, at::ones_like(normalisers));
  const at::Tensor parts = at::where(counted, quotients, at::zeros_like(sums));
  return {parts.sum(), parts.detach()};
}

}  // namespace stoker::core

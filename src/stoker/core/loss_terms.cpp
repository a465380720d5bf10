// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "stoker/base/error.h"

namespace stoker::core {
namespace {

// [terms] float64: S_k * w_k / N_k, 0 where N_k is 0. Differentiable through the sums.
at::Tensor parts(const LossTerms& terms, const Normalisers& normalisers) {
  if (static_cast<std::int64_t>(terms.size()) != normalisers.numel()) {
    fail<ConfigError>("core.loss_terms", "{} loss terms came with {} normalisers", terms.size(), normalisers.numel());
  }
  std::vector<at::Tensor> weighted;
  weighted.reserve(terms.size());
  for (const LossTerm& term : terms) {
    weighted.push_back(term.weight == 1 ? term.sum : term.sum * term.weight);
  }
  // float64 costs nothing on a handful of numbers, and the division then rounds once.
  const at::Tensor sums = at::stack(weighted).to(at::kDouble);
  return at::where(normalisers > 0, sums / normalisers.clamp_min(1e-300), at::zeros_like(sums));
}

}  // namespace

at::Tensor normalised_total(const LossTerms& terms, const Normalisers& normalisers) {
  return parts(terms, normalisers).sum();
}

at::Tensor normalised_parts(const LossTerms& terms, const Normalisers& normalisers) {
  return parts(terms, normalisers).detach();
}

}  // namespace stoker::core

// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/core/fused_loss.h"
#include "stoker/core/host_value.h"

namespace stoker::core {
namespace {

// float64 costs nothing for a few numbers.
struct Quotients {
  std::vector<at::Tensor> gradients;
  at::Tensor parts;
};

at::Tensor weighted(const at::Tensor& tensor, double weight) { return weight == 1 ? tensor : tensor * weight; }

Quotients by_operators(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale) {
  const at::Tensor uncounted = normalisers <= 0;
  const at::Tensor inverse = normalisers.reciprocal().masked_fill_(uncounted, 0);
  const at::Tensor scaled = scale.defined() ? inverse * scale : inverse;
  std::vector<at::Tensor> sums;
  Quotients quotients;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const at::Tensor& sum = terms[k].sum;
    sums.push_back(weighted(sum.detach(), terms[k].weight).to(at::kDouble));
    const at::Tensor factor = scaled.select(0, static_cast<std::int64_t>(k));
    quotients.gradients.push_back(weighted(factor, terms[k].weight).to(sum.scalar_type()));
  }
  quotients.parts = at::stack(sums).mul_(inverse).masked_fill_(uncounted, 0);
  return quotients;
}

bool plain_number(const at::Tensor& tensor) {
  return on_host(tensor) && tensor.numel() == 1 &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

Quotients on_the_host(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale) {
  Quotients quotients;
  quotients.parts = host_tensor(0, at::kDouble, {static_cast<std::int64_t>(terms.size())});
  double* parts = quotients.parts.mutable_data_ptr<double>();
  const double* counts = normalisers.const_data_ptr<double>();
  const double times = scale.defined() ? host_value(scale) : 1;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const TermQuotients term = divide_term(host_value(terms[k].sum), terms[k].weight, counts[k], times);
    parts[k] = term.part;
    quotients.gradients.push_back(host_tensor(term.gradient, terms[k].sum.scalar_type()));
  }
  return quotients;
}

bool fits_the_kernel(const LossTerms& terms, const Normalisers& normalisers) {
  return terms.size() <= kMostTerms && normalisers.scalar_type() == at::kDouble && normalisers.is_contiguous() &&
         std::ranges::all_of(terms, [&](const LossTerm& term) {
           return term.sum.scalar_type() == at::kFloat && term.sum.device() == normalisers.device();
         });
}

Quotients by_kernel(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale,
                    const DivideTerms& divide) {
  const at::Tensor gradients = at::empty(normalisers.sizes(), normalisers.options().dtype(at::kFloat));
  Quotients quotients{{}, at::empty(normalisers.sizes(), normalisers.options())};
  LossWork work;
  for (const LossTerm& term : terms) {
    work.sums[work.terms] = term.sum.const_data_ptr<float>();
    work.weights[work.terms] = term.weight;
    quotients.gradients.push_back(gradients.select(0, work.terms++));
  }
  work.normalisers = normalisers.const_data_ptr<double>();
  work.scale = scale.defined() ? scale.const_data_ptr<float>() : nullptr;
  work.parts = quotients.parts.mutable_data_ptr<double>();
  work.gradients = gradients.mutable_data_ptr<float>();
  divide(work);
  return quotients;
}

Quotients divided(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale,
                  const DivideTerms& divide) {
  if (on_host(normalisers) && normalisers.scalar_type() == at::kDouble && normalisers.is_contiguous() &&
      (!scale.defined() || plain_number(scale)) &&
      std::ranges::all_of(terms, [](const LossTerm& term) { return plain_number(term.sum); })) {
    return on_the_host(terms, normalisers, scale);
  }
  return divide && fits_the_kernel(terms, normalisers) ? by_kernel(terms, normalisers, scale, divide)
                                                       : by_operators(terms, normalisers, scale);
}

}  // namespace

NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale) {
  return normalise(terms, normalisers, scale, {});
}

NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale,
                         const DivideTerms& divide) {
  if (static_cast<std::int64_t>(terms.size()) != normalisers.numel()) {
    fail<ConfigError>("core.loss_terms", "the loss has {} terms but {} normalisers; return one per term", terms.size(),
                      normalisers.numel());
  }
  const at::NoGradGuard no_grad;
  Quotients quotients = divided(terms, normalisers, scale, divide);
  const bool learns = std::ranges::any_of(terms, [](const LossTerm& term) { return term.sum.requires_grad(); });
  NormalisedLoss loss;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (terms[k].sum.requires_grad() || !learns) {
      loss.sums.push_back(terms[k].sum);
      loss.gradients.push_back(std::move(quotients.gradients[k]));
    }
  }
  loss.parts = std::move(quotients.parts);
  return loss;
}

}  // namespace stoker::core

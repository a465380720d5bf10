// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "stoker/base/error.h"
#include "stoker/core/dtype_groups.h"

namespace stoker::optim {

std::vector<at::Tensor> gradients(const std::vector<core::Parameter>& parameters) {
  std::vector<at::Tensor> grads;
  grads.reserve(parameters.size());
  for (const core::Parameter& parameter : parameters) {
    if (parameter.tensor.grad().defined()) {
      grads.push_back(parameter.tensor.grad());
    }
  }
  return grads;
}

at::Tensor gradient_norm(const std::vector<at::Tensor>& grads) {
  const at::NoGradGuard no_grad;
  if (grads.empty()) {
    return at::zeros({}, at::kFloat);
  }
  std::vector<at::Tensor> norms;
  norms.reserve(grads.size());
  bool exact = false;  // float64 gradients among them
  for (const auto& [dtype, group] : core::by_dtype(grads)) {
    exact |= dtype == at::kDouble;
    const bool half = at::isReducedFloatingType(dtype);
    for (at::Tensor& norm : at::_foreach_norm(group, 2, half ? std::optional(at::kFloat) : std::nullopt)) {
      norms.push_back(std::move(norm));
    }
  }
  for (at::Tensor& norm : norms) {
    norm = norm.to(exact ? at::kDouble : at::kFloat);
  }
  return at::linalg_vector_norm(at::stack(norms), 2);
}

at::Tensor clip_by_norm(const std::vector<at::Tensor>& grads, double max_norm) {
  if (!(max_norm > 0)) {
    fail<ConfigError>("optim.clip", "clip must be positive, got {}", max_norm);
  }
  const at::NoGradGuard no_grad;
  at::Tensor norm = gradient_norm(grads);
  const at::Tensor factor = (max_norm / (norm + 1e-6)).clamp_max(1);
  const auto groups = core::by_dtype(grads);
  std::vector<at::Tensor> factors;
  factors.reserve(groups.size());
  for (const auto& [dtype, group] : groups) {
    factors.push_back(factor.to(dtype));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    at::_foreach_mul_(groups[i].second, factors[i]);
  }
  return norm;
}

void mark_non_finite(const at::Tensor& norm, at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  const at::Tensor bad = at::isfinite(norm).logical_not().to(found_inf.scalar_type()).reshape({1});
  at::maximum_out(found_inf, found_inf, bad);
}

}  // namespace stoker::optim

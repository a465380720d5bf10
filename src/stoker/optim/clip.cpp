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

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/dtype_groups.h"
#include "stoker/core/host_value.h"
#include "stoker/optim/small_tensors.h"

namespace stoker::optim {
namespace {

bool all_on_host(const std::vector<at::Tensor>& tensors) { return std::ranges::all_of(tensors, core::on_host); }

// The norm of each tensor, half types in float32.
std::vector<at::Tensor> norms_of(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> norms;
  norms.reserve(grads.size());
  for (const auto& [dtype, group] : core::by_dtype(grads)) {
    const bool half = at::isReducedFloatingType(dtype);
    for (at::Tensor& norm : at::_foreach_norm(group, 2, half ? std::optional(at::kFloat) : std::nullopt)) {
      norms.push_back(std::move(norm));
    }
  }
  return norms;
}

at::ScalarType norm_dtype(const std::vector<at::Tensor>& grads) {
  const auto is_exact = [](const at::Tensor& grad) { return grad.scalar_type() == at::kDouble; };
  return std::ranges::any_of(grads, is_exact) ? at::kDouble : at::kFloat;
}

at::Tensor norm_by_operators(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> norms = norms_of(grads);
  for (at::Tensor& norm : norms) {
    norm = norm.to(norm_dtype(grads));
  }
  return at::linalg_vector_norm(at::stack(norms), 2);
}

at::Tensor norm_on_the_host(const std::vector<at::Tensor>& grads) {
  double squares = 0;
  std::vector<at::Tensor> large;
  for (const at::Tensor& grad : grads) {
    if (is_small(grad)) {
      squares += sum_of_squares(grad);
    } else {
      large.push_back(grad);
    }
  }
  for (const at::Tensor& norm : norms_of(large)) {
    squares += core::host_value(norm) * core::host_value(norm);
  }
  return core::host_tensor(std::sqrt(squares), norm_dtype(grads));
}

void multiply_on_the_host(const std::vector<at::Tensor>& grads, double factor) {
  std::vector<at::Tensor> large;
  std::ranges::copy_if(grads, std::back_inserter(large), [](const at::Tensor& grad) { return !is_small(grad); });
  const auto groups = core::by_dtype(large);
  for (const at::Tensor& grad : grads) {
    if (is_small(grad)) {
      multiply(grad, static_cast<float>(factor));
    }
  }
  for (const auto& [dtype, group] : groups) {
    at::_foreach_mul_(group, factor);
  }
}

at::Tensor clip_by_operators(const std::vector<at::Tensor>& grads, double max_norm) {
  const at::NoGradGuard no_grad;
  at::Tensor norm = norm_by_operators(grads);
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

}  // namespace

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
  return all_on_host(grads) ? norm_on_the_host(grads) : norm_by_operators(grads);
}

at::Tensor clip_by_norm(const std::vector<at::Tensor>& grads, double max_norm) {
  if (!(max_norm > 0)) {
    fail<ConfigError>("optim.clip", "clip must be positive, got {}", max_norm);
  }
  if (!all_on_host(grads)) {
    return clip_by_operators(grads, max_norm);
  }
  const at::NoGradGuard no_grad;
  at::Tensor norm = gradient_norm(grads);
  const double factor = max_norm / (core::host_value(norm) + 1e-6);
  if (!(factor >= 1)) {  // NaN spreads
    multiply_on_the_host(grads, factor);
  }
  return norm;
}

void mark_non_finite(const at::Tensor& norm, at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  const at::Tensor bad = at::isfinite(norm).logical_not().to(found_inf.scalar_type()).reshape({1});
  at::maximum_out(found_inf, found_inf, bad);
}

}  // namespace stoker::optim

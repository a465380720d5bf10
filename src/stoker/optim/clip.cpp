// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/dtype_groups.h"
#include "stoker/core/host_value.h"
#include "stoker/core/step_work.h"
#include "stoker/optim/plain_loops.h"

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

at::Tensor norm_on_the_host(const std::vector<at::Tensor>& grads) {
  double squares = 0;
  std::vector<at::Tensor> others;
  for (const at::Tensor& grad : grads) {
    if (is_plain(grad)) {
      squares += sum_of_squares(grad);
    } else {
      others.push_back(grad);
    }
  }
  for (const at::Tensor& norm : norms_of(others)) {
    squares += core::host_value(norm) * core::host_value(norm);
  }
  return core::host_tensor(std::sqrt(squares), norm_dtype(grads));
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
  return all_on_host(grads) ? norm_on_the_host(grads) : at::linalg_vector_norm(gradient_norms(grads), 2);
}

at::Tensor gradient_norms(const std::vector<at::Tensor>& grads) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms = norms_of(grads);
  for (at::Tensor& norm : norms) {
    norm = norm.to(norm_dtype(grads));
  }
  return at::stack(norms);
}

at::Tensor clip_divisor(const at::Tensor& norm, double max_norm) {
  if (!(max_norm > 0)) {
    fail<ConfigError>("optim.clip", "clip must be positive, got {}", max_norm);
  }
  const at::NoGradGuard no_grad;
  if (!core::on_host(norm)) {
    return ((norm + core::kNormEps) / max_norm).clamp_min(1);
  }
  const double divisor = core::clip_divisor(core::host_value(norm), max_norm);
  return divisor == 1 ? at::Tensor() : core::host_tensor(divisor, norm.scalar_type());
}

void mark_non_finite(const at::Tensor& norm, at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  if (core::on_host(norm)) {
    if (!std::isfinite(core::host_value(norm))) {
      core::set_host_value(found_inf, 1);
    }
    return;
  }
  const at::Tensor bad = at::isfinite(norm).logical_not().to(found_inf.scalar_type()).reshape({1});
  at::maximum_out(found_inf, found_inf, bad);
}

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "stoker/base/error.h"
#include "stoker/core/dtype_groups.h"
#include "stoker/core/host_value.h"
#include "stoker/precision/all_finite.h"

namespace stoker::precision {
namespace {

void require_valid(const GradScalerOptions& o) {
  const bool factors =
      o.growth_factor > 1 && std::isfinite(o.growth_factor) && o.backoff_factor > 0 && o.backoff_factor < 1;
  if (!factors || !(o.initial_scale > 0 && std::isfinite(o.initial_scale)) || o.growth_interval < 1) {
    fail<ConfigError>(
        "precision.grad_scaler",
        "scale {} must be positive, growth {} above 1, backoff {} between 0 and 1, interval {} at least 1",
        o.initial_scale, o.growth_factor, o.backoff_factor, o.growth_interval);
  }
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options, at::Device device) : options_(options) {
  require_valid(options);
  const auto on_device = at::TensorOptions().device(device).dtype(at::kFloat);
  scale_ = at::full({}, options.scaling ? options.initial_scale : 1, on_device);
  growth_tracker_ = at::zeros({}, on_device.dtype(at::kInt));
  found_inf_ = at::zeros({1}, on_device);
  one_ = at::ones({}, on_device);
}

void GradScaler::check(const std::vector<at::Tensor>& grads) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> others;
  const bool host = core::on_host(found_inf_);
  for (const at::Tensor& grad : grads) {
    if (!host || !may_check_alone(grad)) {
      others.push_back(grad);
    } else if (!all_finite(grad)) {
      core::set_host_value(found_inf_, 1);
    }
  }
  for (const auto& [dtype, group] : core::by_dtype(others)) {
    at::_amp_foreach_non_finite_check_and_unscale_(group, found_inf_, one_);
  }
}

void GradScaler::update() {
  const at::NoGradGuard no_grad;
  if (options_.scaling) {
    at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, options_.growth_factor, options_.backoff_factor,
                           options_.growth_interval);
  }
}

void GradScaler::clear() {
  if (core::on_host(found_inf_)) {
    core::set_host_value(found_inf_, 0);
  } else {
    found_inf_.zero_();
  }
}

void GradScaler::save_state(core::State& state) const {
  state.tensors["scaler.scale"] = scale_;
  state.tensors["scaler.growth_tracker"] = growth_tracker_;
}

void GradScaler::load_state(const core::State& state) {
  core::restore_tensor(scale_, state, "scaler.scale");
  core::restore_tensor(growth_tracker_, state, "scaler.growth_tracker");
}

}  // namespace stoker::precision

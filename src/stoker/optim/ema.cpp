// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "stoker/base/error.h"

namespace stoker::optim {

Ema::Ema(const std::vector<core::Parameter>& parameters, const core::TensorList& norm_buffers, double decay)
    : parameters_(parameters.size()), decay_(decay) {
  if (!(decay > 0 && decay < 1)) {
    fail<ConfigError>("optim.ema", "ema must be above 0 and below 1, got {}", decay);
  }
  for (const core::Parameter& parameter : parameters) {
    names_.push_back("ema." + parameter.name);
    values_.push_back(parameter.tensor);
  }
  for (const at::Tensor& buffer : norm_buffers) {
    names_.push_back("ema.norm_buffers." + std::to_string(values_.size() - parameters_));
    values_.push_back(buffer);
  }
  const at::NoGradGuard no_grad;
  for (const at::Tensor& value : values_) {
    const bool half = at::isReducedFloatingType(value.scalar_type());
    averages_.push_back(half ? value.detach().to(at::kFloat) : value.detach().clone());
    staging_.push_back(half ? at::empty_like(averages_.back()) : at::Tensor());
  }
  const at::Device device = values_.empty() ? at::Device(at::kCPU) : values_.front().device();
  updates_ = at::zeros({}, at::TensorOptions().device(device).dtype(at::kDouble));
  weight_ = at::zeros_like(updates_);
}

void Ema::update(const at::Tensor& found_inf) {
  if (in_place_) {
    fail<ConfigError>("optim.ema", "the averages stand in for the weights: end Ema::InPlace before the next step");
  }
  const at::NoGradGuard no_grad;
  updates_.add_(1);
  // 1 - (1 + t) / (10 + t) = 9 / (10 + t), and at least 1 - decay.
  at::add_out(weight_, updates_, 10);
  weight_.reciprocal_().mul_(9).clamp_min_(1 - decay_);
  if (found_inf.defined()) {
    const at::Tensor skipped = found_inf.reshape({});
    updates_.sub_(skipped);
    weight_.mul_(1 - skipped);
  }
  const at::Tensor single = weight_.to(at::kFloat);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const at::Tensor value = staging_[i].defined() ? staging_[i].copy_(values_[i]) : values_[i];
    averages_[i].lerp_(value, value.scalar_type() == at::kDouble ? weight_ : single);
  }
}

void Ema::exchange() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    at::Tensor &value = values_[i], &average = averages_[i];
    if (i < parameters_ && !staging_[i].defined()) {
      const at::Tensor old = value.detach();
      value.set_data(average);
      average = old;
    } else {
      // Running statistics are views of one storage that must stay theirs; half values have averages of another dtype.
      const at::Tensor old = value.detach().to(average.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      value.copy_(average);
      average.copy_(old);
    }
  }
}

Ema::InPlace::InPlace(Ema& ema) : ema_(ema) {
  if (ema.in_place_) {
    fail<ConfigError>("optim.ema", "the averages already stand in for the weights");
  }
  ema.exchange();
  ema.in_place_ = true;
}

Ema::InPlace::~InPlace() {
  ema_.exchange();
  ema_.in_place_ = false;
}

void Ema::save_state(core::State& state) const {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    state.tensors[names_[i]] = averages_[i];
  }
  state.tensors["ema.updates"] = updates_;
}

void Ema::load_state(const core::State& state) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    core::restore_tensor(averages_[i], state, names_[i]);
  }
  core::restore_tensor(updates_, state, "ema.updates");
}

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/optim/plain_loops.h"

namespace stoker::optim {
namespace {

// averages -= weight * (averages - values) as a step of SGD with that difference as gradient: with weight decay 1 and
// negated gradients (the values), LibTorch's kernel computes exactly this, for all tensors at once and with a weight
// that is only on the device. (_foreach_lerp_ needs a weight on the host.)
void lerp_together(const std::vector<at::Tensor>& averages, const std::vector<at::Tensor>& values,
                   const at::Tensor& weight) {
  at::_fused_sgd_(averages, values, {}, /*weight_decay=*/1, /*momentum=*/0, weight, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/true, /*is_first_step=*/false);
}

}  // namespace

Ema::Ema(const std::vector<core::Parameter>& parameters, const core::TensorList& norm_buffers, double decay)
    : parameters_(parameters.size()),
      weight_(decay, parameters.empty() ? at::Device(at::kCPU) : parameters.front().tensor.device()) {
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
    const bool fixed = half || averages_.size() > parameters_;  // that is, its storage
    staging_.push_back(fixed ? at::empty_like(averages_.back()) : at::Tensor());
    if (half) {
      halves_.push_back(value);
      staged_halves_.push_back(staging_.back());
    }
  }
}

void Ema::update(const at::Tensor& found_inf) {
  refuse_in_place();
  const at::NoGradGuard no_grad;
  weight_.next(found_inf);
  apply();
}

void Ema::refuse_in_place() const {
  if (in_place_) {
    fail<ConfigError>("optim.ema", "the averages are in place of the weights; end Ema::InPlace before the next step");
  }
}

void Ema::apply() {
  refuse_in_place();
  const at::NoGradGuard no_grad;
  if (!halves_.empty()) {
    at::_foreach_copy_(staged_halves_, halves_);
  }
  std::vector<at::Tensor> averages, values;  // for one kernel
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const bool half = values_[i].scalar_type() != averages_[i].scalar_type();
    const at::Tensor& value = half ? staging_[i] : values_[i];
    const bool alike = value.scalar_type() == at::kFloat && value.strides() == averages_[i].strides();
    if (!value.is_floating_point()) {
      averages_[i].copy_(value);  // a count
    } else if (alike && is_plain(averages_[i]) && is_plain(value)) {
      lerp(averages_[i], value, static_cast<float>(core::host_value(weight_.exact())));
    } else if (alike && !core::on_host(value)) {
      averages.push_back(averages_[i]);
      values.push_back(value);
    } else {
      averages_[i].lerp_(value, value.scalar_type() == at::kDouble ? weight_.exact() : weight_.rounded());
    }
  }
  if (!averages.empty()) {
    lerp_together(averages, values, weight_.rounded());
  }
}

Ema::InPlace::InPlace(Ema& ema) : ema_(ema), weights_(ema.values_.size()) {
  if (ema.in_place_) {
    fail<ConfigError>("optim.ema", "the averages are already in place of the weights; only one Ema::InPlace at a time");
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (ema.staging_[i].defined()) {
      ema.staging_[i].copy_(ema.values_[i]);
    } else {
      weights_[i] = ema.values_[i].detach();
    }
  }
  try {
    put_averages();
  } catch (...) {
    put_weights();
    throw;
  }
  ema.in_place_ = true;
}

Ema::InPlace::~InPlace() {
  try {
    put_weights();
  } catch (...) {  // nothing was allocated, so the device is lost; its next use reports that
  }
  ema_.in_place_ = false;
}

void Ema::InPlace::put_averages() {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].defined()) {
      ema_.values_[i].set_data(ema_.averages_[i]);
    } else {
      ema_.values_[i].copy_(ema_.averages_[i]);
    }
  }
}

void Ema::InPlace::put_weights() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i].defined()) {
      ema_.values_[i].set_data(weights_[i]);
    } else {
      ema_.values_[i].copy_(ema_.staging_[i]);
    }
  }
}

void Ema::save_state(core::State& state) const {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    state.tensors[names_[i]] = averages_[i];
  }
  state.tensors["ema.updates"] = weight_.updates();
}

void Ema::load_state(const core::State& state) {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    core::restore_tensor(averages_[i], state, names_[i]);
  }
  core::restore_tensor(weight_.updates(), state, "ema.updates");
}

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/ema_weight.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "stoker/core/host_value.h"

namespace stoker::optim {

EmaWeight::EmaWeight(double decay, at::Device device)
    : decay_(decay), updates_(at::zeros({}, at::TensorOptions().device(device).dtype(at::kDouble))) {
  weight_ = at::zeros_like(updates_);
  taken_ = at::ones_like(updates_);
  weight_float_ = at::zeros_like(updates_, at::kFloat);
}

void EmaWeight::next(const at::Tensor& found_inf) {
  if (!core::on_host(updates_) || (found_inf.defined() && !core::on_host(found_inf))) {
    next_by_operators(found_inf);
    return;
  }
  core::next_weight(work(), found_inf.defined() && core::host_value(found_inf) > 0);
}

core::EmaWork EmaWeight::work() const {
  return {decay_, updates_.mutable_data_ptr<double>(), weight_.mutable_data_ptr<double>(),
          weight_float_.mutable_data_ptr<float>()};
}

void EmaWeight::next_by_operators(const at::Tensor& found_inf) {
  updates_.add_(1);
  // 1 - (1 + t) / (10 + t) = 9 / (10 + t), and at least 1 - decay.
  at::add_out(weight_, updates_, 10);
  weight_.reciprocal_().mul_(9).clamp_min_(1 - decay_);
  if (found_inf.defined()) {
    taken_.copy_(found_inf.reshape({}));  // 1 if the step was skipped
    updates_.sub_(taken_);
    weight_.mul_(taken_.neg_().add_(1));
  }
  weight_float_.copy_(weight_);
}

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/optimizer_by_parameter.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

class OptimizerByParameter final : public optim::Optimizer {
 public:
  OptimizerByParameter(const optim::OptimizerOptions& options, const std::vector<core::Parameter>& parameters)
      : options_(options) {
    for (const core::Parameter& parameter : parameters) {
      if (parameter.tensor.requires_grad()) {
        const bool decays = parameter.role != core::Role::kNorm && parameter.role != core::Role::kBias;
        moved_.push_back({.value = parameter.tensor,
                          .decay = decays ? options.weight_decay : 0,
                          .first = {},
                          .second = {},
                          .steps = 0});
      }
    }
  }

  void set_lr(double lr) override { lr_ = lr; }
  void step(const at::Tensor&, const at::Tensor& grad_scale) override {
    const at::NoGradGuard no_grad;
    for (Moved& each : moved_) {
      if (each.value.grad().defined()) {
        if (grad_scale.defined()) {
          each.value.mutable_grad().div_(grad_scale);
        }
        options_.name == "sgd" ? sgd(each, lr_) : adamw(each, lr_);
        ++each.steps;
      }
    }
  }
  [[nodiscard]] std::int64_t state_bytes() const override { return 0; }
  void save_state(core::State&) const override {}
  void load_state(const core::State&) override {}

 private:
  struct Moved {
    at::Tensor value;
    double decay;
    at::Tensor first, second;
    int steps;
  };

  // torch/csrc/api/src/optim/sgd.cpp
  void sgd(Moved& each, double lr) const {
    at::Tensor gradient = each.value.grad();
    if (each.decay != 0) {
      gradient = gradient.add(each.value, each.decay);
    }
    if (options_.momentum != 0) {
      if (each.first.defined()) {
        each.first.mul_(options_.momentum).add_(gradient);
      } else {
        each.first = gradient.clone();
      }
      gradient = options_.nesterov ? gradient.add(each.first, options_.momentum) : each.first;
    }
    each.value.add_(gradient, -lr);
  }

  // torch/csrc/api/src/optim/adamw.cpp
  void adamw(Moved& each, double lr) const {
    const at::Tensor& gradient = each.value.grad();
    if (each.decay != 0) {
      each.value.mul_(1 - lr * each.decay);
    }
    if (!each.first.defined()) {
      each.first = at::zeros_like(each.value);
      each.second = at::zeros_like(each.value);
    }
    const double correction1 = 1 - std::pow(options_.beta1, each.steps + 1);
    const double correction2 = 1 - std::pow(options_.beta2, each.steps + 1);
    each.first.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    each.second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const at::Tensor denominator = (each.second.sqrt() / std::sqrt(correction2)).add_(options_.eps);
    each.value.addcdiv_(each.first, denominator, -lr / correction1);
  }

  optim::OptimizerOptions options_;
  double lr_ = 0;
  std::vector<Moved> moved_;
};

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer_by_parameter(const optim::OptimizerOptions& options,
                                                              const std::vector<core::Parameter>& parameters) {
  if (options.name != "sgd" && options.name != "adamw") {
    fail<ConfigError>("study.optimizer_by_parameter", "unknown optimizer \"{}\"; use sgd or adamw", options.name);
  }
  return std::make_unique<OptimizerByParameter>(options, parameters);
}

}  // namespace stoker::study

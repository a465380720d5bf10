// SPDX-License-Identifier: Apache-2.0
// Optimizers on LibTorch's fused kernels: one call updates a whole group of parameters. Part of a step's commit: all
// state exists from construction on and step() neither allocates nor waits for the device (LibTorch's CPU kernel of
// Adam reads the step counter with item(), one a parameter: host memory, no wait). Called by train::Step from one
// thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/stateful.h"
#include "stoker/core/trainable.h"

namespace stoker::optim {

struct OptimizerOptions {
  std::string name = "adamw";  // one of known_optimizers()
  // adamw: decoupled (Loshchilov and Hutter, 2019); adam and sgd: added to the gradient (L2), as PyTorch does.
  // Norm parameters and biases are never decayed.
  double weight_decay = 0.01;
  double momentum = 0.9;  // sgd
  bool nesterov = false;  // sgd, with momentum > 0
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;
  double eps = 1e-8;
  // Multiplies the learning rate of a parameter; none means 1 for all. Asked once, at construction.
  std::function<double(const core::Parameter&)> lr_factor = {};
};

class Optimizer : public core::Stateful {
 public:
  // The learning rate of the steps that follow. On a GPU it goes into a tensor there: what is in a CUDA graph reads it.
  virtual void set_lr(double lr) = 0;
  // Moves every parameter that has a gradient.
  // found_inf: float32 [1] on the device, 1 = change nothing (the step counter
  // neither); undefined = go ahead. grad_scale: 0-dim or [1], float32 or float64, gradients are divided by it first, in
  // place; undefined = they are true.
  virtual void step(const at::Tensor& found_inf, const at::Tensor& grad_scale) = 0;
  void step(double lr, const at::Tensor& found_inf = {}, const at::Tensor& grad_scale = {}) {
    set_lr(lr);
    step(found_inf, grad_scale);
  }
  // Bytes of state held on the device: moments and master weights.
  [[nodiscard]] virtual std::int64_t state_bytes() const = 0;
};

[[nodiscard]] const std::vector<std::string>& known_optimizers();

// Takes the parameters that require gradients now; state tensors are named "optimizer.exp_avg.<parameter>" and so on.
// float16 and bfloat16 parameters get float32 master weights and moments, and autograd accumulates their gradients in
// float32 from here on (Tensor::set_grad_dtype; gradients that are there are dropped). One step counter serves all
// parameters, so a parameter that sits a step out ages with the others (PyTorch counts each by itself). ConfigError for
// an unknown name or a value out of range.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<core::Parameter>& parameters);

}  // namespace stoker::optim

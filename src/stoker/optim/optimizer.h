// SPDX-License-Identifier: Apache-2.0
// Optimizers on LibTorch's fused kernels: one call updates a whole group of parameters. Part of the commit of a step:
// all state exists after construction, and step() neither allocates nor waits for the device (LibTorch's CPU kernel of
// Adam reads the step counter with item(), once per parameter: host memory, no wait). Called by train::Step from one
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
  // adamw: decoupled (Loshchilov and Hutter, 2019); adam and sgd: added to the gradient (L2), as in PyTorch.
  // Norm parameters and biases are never decayed.
  double weight_decay = 0.01;
  double momentum = 0.9;  // sgd
  bool nesterov = false;  // sgd, with momentum > 0
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;
  double eps = 1e-8;
  // Factor for the learning rate of a parameter; none means 1 for all. Called once, at construction.
  std::function<double(const core::Parameter&)> lr_factor = {};
};

class Optimizer : public core::Stateful {
 public:
  // Sets the learning rate of the following steps. On a GPU it is stored in a device tensor, which a CUDA graph can
  // read.
  virtual void set_lr(double lr) = 0;
  // Replaces gradients that other code set with another dtype or layout than autograd's, so that step() allocates no
  // tensor. May be repeated; step() begins with it.
  virtual void adopt_gradients() {}
  // Updates every parameter that has a gradient.
  // found_inf: float32 [1] on the device, 1 = change nothing (not even the step counter); undefined = always update.
  // grad_scale: 0-dim or [1], float32 or float64, gradients are divided by it first, in place; undefined = 1.
  virtual void step(const at::Tensor& found_inf, const at::Tensor& grad_scale) = 0;
  void step(double lr, const at::Tensor& found_inf = {}, const at::Tensor& grad_scale = {}) {
    set_lr(lr);
    step(found_inf, grad_scale);
  }
  // The same, one parameter at a time: count_step() before the first, then update() with the parameter's gradient.
  // Together they equal a step() with undefined found_inf and grad_scale, to the bit. ConfigError if the optimizer
  // cannot do it.
  virtual void count_step();
  virtual void update(const at::Tensor& parameter);
  // The state of all ranks on rank 0, elsewhere nothing; without ranks that of save_state(). A collective call.
  [[nodiscard]] virtual core::State whole_state();
  // Bytes of state on the device: moments and master weights.
  [[nodiscard]] virtual std::int64_t state_bytes() const = 0;
};

[[nodiscard]] const std::vector<std::string>& known_optimizers();

// Uses the parameters that require gradients at this time; state tensors are named "optimizer.exp_avg.<parameter>" and
// so on. float16 and bfloat16 parameters get float32 master weights and moments, and autograd accumulates their
// gradients in float32 from now on (Tensor::set_grad_dtype; existing gradients are dropped). All parameters share one
// step counter, so it also counts for a parameter without a gradient in a step (PyTorch counts per parameter).
// ConfigError for an unknown name or a value out of range.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<core::Parameter>& parameters);

}  // namespace stoker::optim

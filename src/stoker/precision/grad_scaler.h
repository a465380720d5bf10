// SPDX-License-Identifier: Apache-2.0
// Dynamic gradient scaling for float16, and the one finite check of a step for every precision. PyTorch's GradScaler
// step for step, without its host syncs and without its pass that divides: the optimizer's kernel does that. Called by
// train::Step; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "stoker/core/stateful.h"

namespace stoker::precision {

struct GradScalerOptions {
  bool scaling = true;  // off: the scale is 1 for good
  double initial_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  // steps in a row without an overflow before the scale grows
};

class GradScaler final : public core::Stateful {
 public:
  // ConfigError for factors that are not growth > 1 > backoff > 0, a scale <= 0 or an interval < 1.
  GradScaler(const GradScalerOptions& options, at::Device device);

  [[nodiscard]] bool scaling() const { return options_.scaling; }
  // Raises found_inf if any element is infinite or NaN. Gradients stay as they are: Optimizer::step divides them by
  // current_scale() in float32, where dividing float16 gradients in place would turn those below 6e-8 into 0. Once a
  // step, after backward; may be called on parts. Undefined tensors are passed over.
  void check(const std::vector<at::Tensor>& grads);
  // float32 [1] on the device: 1 if this step must change nothing. For Optimizer::step and Ema::update.
  [[nodiscard]] at::Tensor& found_inf() { return found_inf_; }
  // float32 0-dim on the device.
  [[nodiscard]] const at::Tensor& current_scale() const { return scale_; }
  // After the optimizer: the scale shrinks after an overflow and grows after growth_interval good steps.
  void update();
  // Before the next step: found_inf to 0. Apart from update() so that found_inf can still be read after it.
  void clear();

  // "scaler.scale" and "scaler.growth_tracker".
  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  GradScalerOptions options_;
  at::Tensor scale_, growth_tracker_, found_inf_;
  at::Tensor one_;  // float32 0-dim: what LibTorch's check multiplies by
};

}  // namespace stoker::precision

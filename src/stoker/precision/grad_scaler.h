// SPDX-License-Identifier: Apache-2.0
// Dynamic gradient scaling for float16, and the only finite check of a step for every precision. Same behaviour as
// PyTorch's GradScaler, without host syncs and without a separate pass for division: the optimizer's kernel divides.
// Called by train::Step; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "stoker/core/stateful.h"

namespace stoker::precision {

struct GradScalerOptions {
  bool scaling = true;  // off: the scale is always 1
  double initial_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  // consecutive steps without overflow before the scale grows
};

class GradScaler final : public core::Stateful {
 public:
  // ConfigError unless growth > 1 > backoff > 0, scale > 0 and interval >= 1.
  GradScaler(const GradScalerOptions& options, at::Device device);

  [[nodiscard]] bool scaling() const { return options_.scaling; }
  // Sets found_inf if any element is infinite or NaN. Gradients are unchanged: Optimizer::step divides them by
  // current_scale() in float32, since dividing float16 gradients in place would turn values below 6e-8 into 0. Once per
  // step, after backward; may be called on parts. Undefined tensors are ignored.
  void check(const std::vector<at::Tensor>& grads);
  // float32 [1] on the device: 1 if this step must change nothing. For Optimizer::step and Ema::update.
  [[nodiscard]] at::Tensor& found_inf() { return found_inf_; }
  // float32 0-dim on the device.
  [[nodiscard]] const at::Tensor& current_scale() const { return scale_; }
  // Call after the optimizer: shrinks the scale after an overflow, grows it after growth_interval good steps.
  void update();
  // Call before the next step: sets found_inf to 0. Separate from update() so that found_inf can be read after it.
  void clear();

  // "scaler.scale" and "scaler.growth_tracker".
  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;

 private:
  GradScalerOptions options_;
  at::Tensor scale_, growth_tracker_, found_inf_;
  at::Tensor one_;  // float32 0-dim: multiplier for LibTorch's check
};

}  // namespace stoker::precision

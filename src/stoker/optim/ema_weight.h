// SPDX-License-Identifier: Apache-2.0
// The weight of the values in an update of Ema: the warm-up of tf.train.ExponentialMovingAverage, without the host
// knowing whether the step was skipped. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/core/step_work.h"

namespace stoker::optim {

class EmaWeight {
 public:
  EmaWeight(double decay, at::Device device);

  // Counts the next update unless found_inf, float32 [1] or undefined, is 1. On a CPU the numbers are computed
  // directly, elsewhere with operators. Allocates nothing on the device.
  void next(const at::Tensor& found_inf);

  // The same for the kernel of a step's verdict: next() on the device.
  [[nodiscard]] core::EmaWork work() const;

  // 0-dim, on the device: 1 - d of this update, 0 for a skipped step.
  [[nodiscard]] const at::Tensor& exact() const { return weight_; }          // float64
  [[nodiscard]] const at::Tensor& rounded() const { return weight_float_; }  // float32
  // float64 0-dim: updates so far.
  [[nodiscard]] const at::Tensor& updates() const { return updates_; }

 private:
  void next_by_operators(const at::Tensor& found_inf);

  double decay_;
  at::Tensor updates_, weight_, weight_float_;
  at::Tensor taken_;  // buffer: whether the step was taken
};

}  // namespace stoker::optim

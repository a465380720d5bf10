// SPDX-License-Identifier: Apache-2.0
// The last word on a step's loss: whether it was finite, how many steps in a row were not, and the row of values that
// the step reports. Called by train::Step. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::train {

// All on one device.
struct StepValues {
  const at::Tensor& loss_parts;  // float64 [terms]
  at::Tensor grad_norm;          // 0-dim floating; undefined: not reported
  at::Tensor scale;              // 0-dim float32, of the gradient scaler; undefined: not reported
};

// found_inf, float32 [1], becomes 1 if the sum of the parts is not finite as float32. skipped, float32 [1]: one more if
// found_inf is 1, else 0. scalars, float32: the sum; the parts if they are several; the norm; skipped; the scale. On a
// CPU the few numbers are computed where they lie; elsewhere by operators, and nobody waits.
void judge_and_report(const StepValues& values, at::Tensor& found_inf, at::Tensor& skipped, at::Tensor& scalars);

}  // namespace stoker::train

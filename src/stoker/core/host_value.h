// SPDX-License-Identifier: Apache-2.0
// A number that lies in CPU memory as a tensor of one element, read and written where it lies: an operator would take a
// microsecond for it, and a small step has 200. Used by the step, its loss and the optimizers; elsewhere item() will
// do. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace stoker::core {

// tensor: one element of float32 or float64, on the CPU.
[[nodiscard]] inline double host_value(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? *tensor.const_data_ptr<double>() : *tensor.const_data_ptr<float>();
}
inline void set_host_value(const at::Tensor& tensor, double value) {
  if (tensor.scalar_type() == at::kDouble) {
    *tensor.mutable_data_ptr<double>() = value;
  } else {
    *tensor.mutable_data_ptr<float>() = static_cast<float>(value);
  }
}

// A new one on the CPU, shape [] or [1]; dtype: kFloat or kDouble.
[[nodiscard]] inline at::Tensor host_tensor(double value, at::ScalarType dtype, at::IntArrayRef shape = {}) {
  at::Tensor tensor = at::empty(shape, dtype);
  set_host_value(tensor, value);
  return tensor;
}

}  // namespace stoker::core

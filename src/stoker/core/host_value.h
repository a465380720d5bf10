// SPDX-License-Identifier: Apache-2.0
// A number that lies in CPU memory as a tensor of one element, read and written where it lies: an operator would take a
// microsecond for it, and a small step has 200. Used by the step, its loss and the optimizers; elsewhere item() will
// do. Thread-safe but for OperatorsOnly.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <atomic>

namespace stoker::core {

// While one lives, on_host() says no: a CPU then runs what a GPU would run, which tests hold against the rest and count
// for waits. but_kernels: kernels of step_work.h run, too, else operators in their place. For tests;
// from one thread, none nested.
class OperatorsOnly {
 public:
  explicit OperatorsOnly(bool but_kernels = false) {
    alive_ = true;
    but_kernels_ = but_kernels;
  }
  ~OperatorsOnly() { alive_ = but_kernels_ = false; }
  OperatorsOnly(const OperatorsOnly&) = delete;
  OperatorsOnly& operator=(const OperatorsOnly&) = delete;
  [[nodiscard]] static bool alive() { return alive_; }
  [[nodiscard]] static bool but_kernels() { return but_kernels_; }

 private:
  static inline std::atomic<bool> alive_ = false, but_kernels_ = false;
};

// Whether the tensor's numbers may be read and written where they lie.
[[nodiscard]] inline bool on_host(const at::Tensor& tensor) { return tensor.is_cpu() && !OperatorsOnly::alive(); }

// Whether a kernel of step_work.h may work on the tensor's numbers.
[[nodiscard]] inline bool takes_kernels(const at::Tensor& tensor) {
  return !tensor.is_cpu() || OperatorsOnly::but_kernels();
}

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
  at::Tensor tensor = at::detail::empty_cpu(shape, at::TensorOptions().dtype(dtype));  // no dispatch
  set_host_value(tensor, value);
  return tensor;
}

}  // namespace stoker::core

// SPDX-License-Identifier: Apache-2.0
// A number in CPU memory as a tensor of one element, read and written directly: an operator would take a microsecond
// for it, and a small step has 200 of them. Used by the step, its loss and the optimizers; elsewhere item() is fast
// enough. Thread-safe except OperatorsOnly.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <atomic>

namespace stoker::core {

// While an object lives, on_host() returns false: a CPU then runs the code of a GPU, which tests compare with the
// normal code and check for waits. but_kernels: kernels of step_work.h run too, else operators replace them. For tests;
// from one thread, not nested.
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

// Whether the tensor's numbers may be read and written directly.
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

// SPDX-License-Identifier: Apache-2.0
// The one guard of torch's switches that hold for the whole process: threads per operator, TF32, cuDNN's search,
// deterministic kernels, autograd's anomaly detection, the random generators of the CPU and of GPUs that are in use.
// Whoever sets one of them for a run, a prediction or a measurement holds a guard, which puts all of them back. Guards
// may nest; one thread at a time.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <utility>
#include <vector>

namespace stoker::precision {

class ProcessSwitches {
 public:
  ProcessSwitches();
  ~ProcessSwitches();  // restores what was set when it was made
  ProcessSwitches(const ProcessSwitches&) = delete;
  ProcessSwitches& operator=(const ProcessSwitches&) = delete;

 private:
  int threads_;
  std::array<at::Float32Precision, 3> float32_;  // of CUDA's matrix products, convolutions and recurrent cells
  bool benchmark_, deterministic_cudnn_, deterministic_, warn_only_, fill_, anomaly_, anomaly_nan_;
  std::vector<std::pair<at::Generator, at::Tensor>> generators_;  // with their states, uint8
};

}  // namespace stoker::precision

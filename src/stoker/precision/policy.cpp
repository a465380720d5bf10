// SPDX-License-Identifier: Apache-2.0
#include "stoker/precision/policy.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::precision {

void apply(const ArithmeticPolicy& policy) {
  at::Context& context = at::globalContext();
  const auto float32 = policy.tf32 ? at::Float32Precision::TF32 : at::Float32Precision::IEEE;
  for (const at::Float32Op op : {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN}) {
    context.setFloat32Precision(at::Float32Backend::CUDA, op, float32);
  }
  context.setBenchmarkCuDNN(policy.cudnn_benchmark && !policy.deterministic);
  context.setDeterministicCuDNN(policy.deterministic);
  context.setDeterministicAlgorithms(policy.deterministic, /*warn_only=*/false);
  // Would fill every new tensor with NaN: a debugging aid that costs a pass over memory.
  context.setDeterministicFillUninitializedMemory(false);
}

SearchGuard::SearchGuard(std::int64_t samples, std::int64_t& largest)
    : switched_off_(samples + 1 < largest && at::globalContext().benchmarkCuDNN()) {
  largest = std::max(largest, samples);
  if (switched_off_) {
    at::globalContext().setBenchmarkCuDNN(false);
  }
}

SearchGuard::~SearchGuard() {
  if (switched_off_) {
    at::globalContext().setBenchmarkCuDNN(true);
  }
}

void convert_to_half(const std::vector<core::Parameter>& parameters, at::ScalarType dtype) {
  if (dtype != at::kHalf && dtype != at::kBFloat16) {
    fail<ConfigError>("precision.policy", "a half model must be float16 or bfloat16, got {}", core::dtype_name(dtype));
  }
  const at::NoGradGuard no_grad;
  for (const core::Parameter& parameter : parameters) {
    if (parameter.role != core::Role::kNorm) {
      parameter.tensor.mutable_grad().reset();
      parameter.tensor.set_data(parameter.tensor.detach().to(dtype));
    }
  }
}

}  // namespace stoker::precision

// SPDX-License-Identifier: Apache-2.0
// The order of a tensor's elements in memory, as the fused kernels need it. Used by FusedOptimizer. Thread-safe: no
// state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stoker::optim {

// Whether the elements of both have the same order in memory. Strides of dimensions of size 1 are ignored.
inline bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) {
      return false;
    }
  }
  return true;
}

// The elements in memory order. On a CPU, PyTorch's fused kernels copy tensors that are not contiguous, in and out:
// twice the time for convolutions in channels_last.
inline at::Tensor as_it_lies(const at::Tensor& tensor) {
  const bool copied = tensor.is_cpu() && !tensor.is_contiguous() && tensor.is_non_overlapping_and_dense();
  return copied ? tensor.as_strided({tensor.numel()}, {1}) : tensor;
}

}  // namespace stoker::optim

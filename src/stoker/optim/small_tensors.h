// SPDX-License-Identifier: Apache-2.0
// Passes over small CPU tensors by loops of ours: LibTorch's _foreach_ operators dispatch once a tensor on a CPU, which
// for a few thousand numbers takes longer than the arithmetic. Larger tensors are left to LibTorch, whose operators
// spread them over threads. Used by clip and ema. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/core/host_value.h"

namespace stoker::optim {

// Up to so many numbers a loop of ours takes no longer than an operator (bench/optim/README.md).
inline constexpr std::int64_t kSmall = 8192;

// Whether the functions below may be called: float32 on the CPU, at most kSmall elements, without gaps or overlap.
[[nodiscard]] inline bool is_small(const at::Tensor& tensor) {
  return core::on_host(tensor) && tensor.scalar_type() == at::kFloat && tensor.numel() <= kSmall &&
         tensor.is_non_overlapping_and_dense();
}

// Added up in float64.
[[nodiscard]] double sum_of_squares(const at::Tensor& tensor);
void multiply(const at::Tensor& tensor, float factor);
// to += weight * (from - to), with lerp_'s rounding up to fused multiply-adds. Strides must agree.
void lerp(const at::Tensor& to, const at::Tensor& from, float weight);

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
// Passes over float32 tensors on a CPU by loops of ours, where LibTorch's operators take longer: they dispatch once a
// tensor, which for a few thousand numbers is longer than the arithmetic, and their norm reads large ones at two thirds
// of the memory's speed (bench/optim/README.md). Large tensors are shared among ATen's threads; how many they are does
// not change a result. Used by clip and ema. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/core/host_value.h"

namespace stoker::optim {

// Whether the functions below may be called: float32 on the CPU, without gaps or overlap.
[[nodiscard]] inline bool is_plain(const at::Tensor& tensor) {
  return core::on_host(tensor) && tensor.scalar_type() == at::kFloat && tensor.is_non_overlapping_and_dense();
}

// Infinite or NaN if and only if an element is. Squares below float32's smallest number count as zero. Large tensors
// are shared among ATen's threads; how many they are does not change the sum.
[[nodiscard]] double sum_of_squares(const at::Tensor& tensor);
// to += weight * (from - to), with lerp_'s rounding up to fused multiply-adds. Strides must agree.
void lerp(const at::Tensor& to, const at::Tensor& from, float weight);

}  // namespace stoker::optim

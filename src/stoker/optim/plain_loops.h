// SPDX-License-Identifier: Apache-2.0
// Our own loops over float32 tensors on a CPU, where LibTorch's operators are slower: they dispatch per tensor, which
// takes longer than the arithmetic for a few thousand numbers, and their norm reads large tensors at two thirds of
// memory speed (bench/optim/README.md). Large tensors are divided among ATen's threads; the number of threads does not
// change a result. Used by clip and ema. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/core/host_value.h"

namespace stoker::optim {

// Whether the functions below may be called: float32 on the CPU, without gaps or overlap.
[[nodiscard]] inline bool is_plain(const at::Tensor& tensor) {
  return core::on_host(tensor) && tensor.scalar_type() == at::kFloat && tensor.is_non_overlapping_and_dense();
}

// Infinite or NaN if and only if an element is. Squares that underflow in float32 count as zero. Large tensors
// are divided among ATen's threads; the number of threads does not change the sum.
[[nodiscard]] double sum_of_squares(const at::Tensor& tensor);
// to += weight * (from - to), rounded like lerp_ except for fused multiply-adds. Strides must be equal.
void lerp(const at::Tensor& to, const at::Tensor& from, float weight);

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
// The finite check of gradients that need no unscaling, on a CPU: a pass that only reads. LibTorch's operator
// multiplies each number by one and writes it back. Used by GradScaler. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::precision {

// Whether all_finite() may be asked: float32 on the CPU, without gaps or overlap.
[[nodiscard]] inline bool is_plain(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_non_overlapping_and_dense();
}

// Whether no element is infinite or NaN. Large tensors are spread over ATen's threads.
[[nodiscard]] bool all_finite(const at::Tensor& tensor);

}  // namespace stoker::precision

// SPDX-License-Identifier: Apache-2.0
// The finite check of gradients on a CPU: a read-only pass on one thread. LibTorch's operator multiplies each number by
// one and writes it back, but on all of ATen's threads. Used by GradScaler. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::precision {

// Whether all_finite() is allowed and faster: float32 on the CPU, without gaps or overlap, and small if there are
// several threads.
[[nodiscard]] bool may_check_alone(const at::Tensor& tensor);

// Whether no element is infinite or NaN.
[[nodiscard]] bool all_finite(const at::Tensor& tensor);

}  // namespace stoker::precision

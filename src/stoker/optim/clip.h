// SPDX-License-Identifier: Apache-2.0
// Gradient norm and clipping without a wait for the device. Part of a step's commit, before the optimizer: allocates a
// few 0-dim results and lists, all before the first gradient is written. Called by train::Step. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::optim {

// The defined gradients of the parameters, in order.
[[nodiscard]] std::vector<at::Tensor> gradients(const std::vector<core::Parameter>& parameters);

// Euclidean norm over all gradients together: 0-dim float32 (float64 for float64 gradients) on their device; 0 for
// none.
[[nodiscard]] at::Tensor gradient_norm(const std::vector<at::Tensor>& grads);

// Scales the gradients in place by min(1, max_norm / (norm + 1e-6)), torch.nn.utils.clip_grad_norm_'s formula, and
// returns the norm before. max_norm must be positive. A norm that is not finite makes the gradients so, too: hand it
// to mark_non_finite.
at::Tensor clip_by_norm(const std::vector<at::Tensor>& grads, double max_norm);

// found_inf (float32 [1]) becomes 1 if the norm is infinite or NaN, and is left alone otherwise.
void mark_non_finite(const at::Tensor& norm, at::Tensor& found_inf);

}  // namespace stoker::optim

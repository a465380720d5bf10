// SPDX-License-Identifier: Apache-2.0
// Gradient norm and clipping without waiting for the device. Gradients are read once for their norm, which also shows
// whether they are finite; the optimizer's kernel divides them while reading. Part of the commit of a step: allocates a
// few 0-dim results and lists, all before the optimizer. Called by train::Step. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "stoker/core/trainable.h"

namespace stoker::optim {

// The defined gradients of the parameters, in order.
[[nodiscard]] std::vector<at::Tensor> gradients(const std::vector<core::Parameter>& parameters);

// Euclidean norm over all gradients: 0-dim float32 (float64 for float64 gradients) on their device; 0 for
// none.
[[nodiscard]] at::Tensor gradient_norm(const std::vector<at::Tensor>& grads);

// The norm of each gradient: 1-dim, same dtype and device. For a kernel that combines them.
[[nodiscard]] at::Tensor gradient_norms(const std::vector<at::Tensor>& grads);

// The divisor that limits the norm of the gradients to max_norm: max(1, (norm + 1e-6) / max_norm), the reciprocal of
// the factor in torch.nn.utils.clip_grad_norm_; 0-dim, dtype and device of norm. For grad_scale of Optimizer::step.
// Undefined if the host knows that it is 1. ConfigError unless max_norm is positive.
[[nodiscard]] at::Tensor clip_divisor(const at::Tensor& norm, double max_norm);

// Sets found_inf (float32 [1]) to 1 if the norm is infinite or NaN; otherwise unchanged.
void mark_non_finite(const at::Tensor& norm, at::Tensor& found_inf);

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
// Cross-entropy as a sum and its normaliser, so that a batch split into microbatches has the same loss and gradients.
// Called by tasks/. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::ops {

// logits [N, C] floating, target int64 [N] in 0 ... C-1 → 0-dim sum over samples; N may be 0. float16 and bfloat16
// logits are summed in float32; float32 and float64 keep their dtype. label_smoothing in [0, 1). class_weights:
// floating [C], or undefined for none. Equals torch.nn.functional.cross_entropy(..., reduction="sum"): Szegedy et al.,
// "Rethinking the Inception Architecture" (2016), section 7, with PyTorch's weighting of the smoothed part.
// ConfigError for smoothing out of range, DataError for wrong shapes and dtypes. The range of targets is not checked
// here (that would wait for the device): the smoke check does it before training.
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                                           double label_smoothing = 0, const at::Tensor& class_weights = {});

// The divisor of that sum for PyTorch's reduction="mean": N, or the sum of class_weights[target]. 0-dim float64 on the
// device of target; never waits.
[[nodiscard]] at::Tensor cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& class_weights = {});

// The same for mixed rows (MixUp, CutMix): share * loss(target) + (1 - share) * loss(target_mixed) per row; share
// floating [N] in 0 ... 1. Equals torch.nn.functional.cross_entropy(..., reduction="sum") with the probabilities share
// and 1 - share as targets, including smoothing and class weights.
[[nodiscard]] at::Tensor mixed_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                                                 const at::Tensor& target_mixed, const at::Tensor& share,
                                                 double label_smoothing = 0, const at::Tensor& class_weights = {});

// N as above; with class weights the sum of weights, per row weighted by its shares, so that rows with share 1 count
// like unmixed rows (PyTorch always divides soft targets by N). Never waits.
[[nodiscard]] at::Tensor mixed_cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& target_mixed,
                                                        const at::Tensor& share, const at::Tensor& class_weights = {});

}  // namespace stoker::ops

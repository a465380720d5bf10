// SPDX-License-Identifier: Apache-2.0
// Cross-entropy as a sum and its normaliser, so that a batch cut into microbatches has the same loss and gradients.
// Called by tasks/. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::ops {

// logits [N, C] floating, target int64 [N] in 0 ... C-1 → 0-dim sum over samples; N may be 0. float16 and bfloat16
// logits are summed in float32; float32 and float64 keep their dtype. label_smoothing in [0, 1). class_weights:
// floating [C], or undefined for none. Equals torch.nn.functional.cross_entropy(..., reduction="sum"): Szegedy et al.,
// "Rethinking the Inception Architecture" (2016), section 7, with PyTorch's weighting of the smoothed part.
// ConfigError for smoothing out of range, DataError for shapes and dtypes that do not fit. That targets lie in range is
// not checked here (it would wait for the device): the smoke batch checks it before training.
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                                           double label_smoothing = 0, const at::Tensor& class_weights = {});

// What that sum is divided by for PyTorch's reduction="mean": N, or the sum of class_weights[target]. 0-dim float64 on
// target's device; never waits.
[[nodiscard]] at::Tensor cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& class_weights = {});

// The same for rows that were mixed (MixUp, CutMix): share * loss(target) + (1 - share) * loss(target_mixed), row by
// row; share floating [N] in 0 ... 1. Equals torch.nn.functional.cross_entropy(..., reduction="sum") with the
// probabilities share and 1 - share as targets, smoothing and class weights included.
[[nodiscard]] at::Tensor mixed_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                                                 const at::Tensor& target_mixed, const at::Tensor& share,
                                                 double label_smoothing = 0, const at::Tensor& class_weights = {});

// N, as there; with class weights their sum, each row's weights by its shares, so that rows with share 1 count as
// unmixed ones do (PyTorch divides soft targets by N even then). Never waits.
[[nodiscard]] at::Tensor mixed_cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& target_mixed,
                                                        const at::Tensor& share, const at::Tensor& class_weights = {});

}  // namespace stoker::ops

// SPDX-License-Identifier: Apache-2.0
// The area under the ROC curve from counts that add up over batches and ranks. Used by classifiers of two classes.
// Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

namespace stoker::tasks {

// Bins of the score: the area is exact except for pairs of samples in the same bin.
inline constexpr std::int64_t kAucBins = 16'384;

// logits [N, 2], target int64 [N] → int64 [2, kAucBins]: samples of each class by the probability of class 1, in bins
// that are even in the logit from -16 to 16. No value is read on the host.
[[nodiscard]] at::Tensor auc_counts(const at::Tensor& logits, const at::Tensor& target);

// The probability that a sample of class 1 has a higher score than one of class 0, ties counting half (Mann and
// Whitney, 1947), from counts on the CPU. NaN if a class has no samples.
[[nodiscard]] double area_under_curve(const at::Tensor& counts);

}  // namespace stoker::tasks

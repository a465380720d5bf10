// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/metrics/binary_auc.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace stoker::tasks {
namespace {

constexpr double kWidest = 16;  // |logit|: beyond it the probability is within 1e-7 of 0 or 1

}  // namespace

at::Tensor auc_counts(const at::Tensor& logits, const at::Tensor& target) {
  const at::Tensor scores = logits.to(at::kFloat);
  const at::Tensor score = scores.select(1, 1) - scores.select(1, 0);
  const at::Tensor bin =
      ((score + kWidest) * (kAucBins / (2 * kWidest))).clamp(0, kAucBins - 1).nan_to_num(0).to(at::kLong);
  return at::zeros({2 * kAucBins}, target.options())
      .scatter_add_(0, target * kAucBins + bin, at::ones_like(target))
      .reshape({2, kAucBins});
}

double area_under_curve(const at::Tensor& counts) {
  const auto cells = counts.accessor<std::int64_t, 2>();
  double below = 0, pairs = 0, positives = 0;
  for (std::int64_t bin = 0; bin < counts.size(1); ++bin) {
    const auto negative = static_cast<double>(cells[0][bin]), positive = static_cast<double>(cells[1][bin]);
    pairs += positive * (below + negative / 2);
    below += negative;
    positives += positive;
  }
  return below > 0 && positives > 0 ? pairs / (below * positives) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
#include "stoker/ops/cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>

#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/core/text.h"

namespace stoker::ops {
namespace {

constexpr std::string_view kWhere = "ops.cross_entropy";

std::optional<at::Tensor> optional_weights(const at::Tensor& class_weights, at::ScalarType dtype) {
  return class_weights.defined() ? std::optional(class_weights.to(dtype)) : std::nullopt;
}

void check_target(const at::Tensor& target) {
  if (target.dim() != 1 || target.scalar_type() != at::kLong) {
    fail<DataError>(kWhere, "targets must be class numbers, int64 [N], got {}", core::describe(target));
  }
}

// PyTorch's loss, summed or per row, after checking its arguments.
at::Tensor loss(const at::Tensor& logits, const at::Tensor& target, double label_smoothing,
                const at::Tensor& class_weights, at::Reduction::Reduction reduction) {
  check_target(target);
  if (logits.dim() != 2 || logits.size(0) != target.size(0) || !at::isFloatingType(logits.scalar_type())) {
    fail<DataError>(kWhere, "logits must be floating [{}, classes], one row per target, got {}", target.size(0),
                    core::describe(logits));
  }
  if (!(label_smoothing >= 0 && label_smoothing < 1)) {
    fail<ConfigError>(kWhere, "label_smoothing must be at least 0 and below 1, got {}", label_smoothing);
  }
  if (class_weights.defined() && (class_weights.dim() != 1 || class_weights.size(0) != logits.size(1))) {
    fail<ConfigError>(kWhere, "class_weights must have one weight for each of {} classes, got {}", logits.size(1),
                      core::describe(class_weights));
  }
  const bool half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  const at::Tensor exact = half ? logits.to(at::kFloat) : logits;
  constexpr std::int64_t kNoIgnoredClass = -100;
  return at::cross_entropy_loss(exact, target, optional_weights(class_weights, exact.scalar_type()), reduction,
                                kNoIgnoredClass, label_smoothing);
}

void check_share(const at::Tensor& target, const at::Tensor& target_mixed, const at::Tensor& share) {
  check_target(target_mixed);
  if (!target_mixed.sizes().equals(target.sizes()) || !share.sizes().equals(target.sizes()) ||
      !at::isFloatingType(share.scalar_type())) {
    fail<DataError>(
        kWhere, "target_mixed must have the shape and dtype of target, and share must be floating [{}], got {} and {}",
        target.size(0), core::describe(target_mixed), core::describe(share));
  }
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target, double label_smoothing,
                             const at::Tensor& class_weights) {
  return loss(logits, target, label_smoothing, class_weights, at::Reduction::Sum);
}

at::Tensor mixed_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& target_mixed,
                                   const at::Tensor& share, double label_smoothing, const at::Tensor& class_weights) {
  check_target(target);
  check_share(target, target_mixed, share);
  const at::Tensor own = loss(logits, target, label_smoothing, class_weights, at::Reduction::None);
  const at::Tensor other = loss(logits, target_mixed, label_smoothing, class_weights, at::Reduction::None);
  return at::lerp(other, own, share.to(own.scalar_type())).sum();
}

at::Tensor mixed_cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& target_mixed,
                                          const at::Tensor& share, const at::Tensor& class_weights) {
  check_target(target);
  check_share(target, target_mixed, share);
  if (!class_weights.defined()) {
    return cross_entropy_normaliser(target);
  }
  const at::Tensor weights = class_weights.to(at::kDouble);
  return at::lerp(weights.index_select(0, target_mixed), weights.index_select(0, target), share.to(at::kDouble)).sum();
}

at::Tensor cross_entropy_normaliser(const at::Tensor& target, const at::Tensor& class_weights) {
  check_target(target);
  if (!class_weights.defined()) {
    const auto samples = static_cast<double>(target.size(0));
    return core::on_host(target) ? core::host_tensor(samples, at::kDouble)
                                 : at::full({}, samples, target.options().dtype(at::kDouble));
  }
  return class_weights.to(at::kDouble).index_select(0, target).sum();
}

}  // namespace stoker::ops

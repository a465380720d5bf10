// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/layers.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include "stoker/base/error.h"
#include "stoker/core/text.h"
#include "stoker/ops/sync_batch_norm.h"

namespace stoker::models {
namespace {

// Casts an input to the dtype of the first weights: a half-precision model takes float32 images. Under autocast weights
// are float32, and the operators cast.
at::Tensor in_dtype_of(const at::Tensor& weight, const at::Tensor& x) {
  const bool same = x.scalar_type() == weight.scalar_type();
  const bool half_in_float32 = weight.scalar_type() == at::kFloat && at::isReducedFloatingType(x.scalar_type());
  return same || half_in_float32 ? x : x.to(weight.scalar_type());
}

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor Conv2d::operator()(const at::Tensor& x) const {
  at::Tensor y = at::conv2d(in_dtype_of(weight, x), weight, optional(bias), {stride, stride}, {padding, padding});
  if (meter && meter->on) {
    meter->flops += 2 * y.numel() * (weight.numel() / weight.size(0));
  }
  return y;
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor y = at::linear(in_dtype_of(weight, x), weight, optional(bias));
  if (meter && meter->on) {
    meter->flops += 2 * y.numel() * weight.size(1);
  }
  return y;
}

at::Tensor Projection::operator()(const at::Tensor& x) const {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(1);
  const at::Tensor y = at::addmm(bias, in_dtype_of(weight, x).reshape({-1, weight.size(0)}), weight);
  if (meter && meter->on) {
    meter->flops += 2 * y.numel() * weight.size(0);
  }
  return y.view(shape);
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x.to(weight.scalar_type()), {weight.size(0)}, weight, bias, eps);
}

at::Tensor Embedding::operator()(const at::Tensor& ids) const { return at::embedding(weight, ids); }

at::Tensor Dropout::operator()(const at::Tensor& x) const {
  const bool on = mode->training && !mode->frozen && probability > 0;
  return on ? at::dropout(x, probability, /*train=*/true) : x;
}

at::Tensor BatchNorm2d::operator()(const at::Tensor& x) const {
  const bool by_batch = mode->by_batch();
  if (by_batch && mode->ranks != nullptr) {
    return ops::sync_batch_norm(x, {weight, bias, running_mean, running_var, momentum, kEps}, *mode->ranks);
  }
  if (by_batch && x.numel() > 0 && x.numel() == x.size(1)) {
    fail<DataError>("models.batch_norm",
                    "batch norm cannot train on one value per channel ({}); use batches of at least 2 samples, "
                    "drop a last batch of 1 sample, or use larger images",
                    core::describe(x));
  }
  return at::batch_norm(x, weight, bias, running_mean, running_var, by_batch, momentum, kEps, /*cudnn_enabled=*/true);
}

at::Tensor GroupNorm::operator()(const at::Tensor& x) const {
  return at::group_norm(x.to(weight.scalar_type()), groups, weight, bias, kEps);
}

}  // namespace stoker::models

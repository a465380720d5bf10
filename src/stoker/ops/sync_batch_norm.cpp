// SPDX-License-Identifier: Apache-2.0
#include "stoker/ops/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <vector>

namespace stoker::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Of all ranks, float64.
struct Statistics {
  at::Tensor count;     // [1], values per channel
  at::Tensor mean, m2;  // [C]; m2: sum of squared differences from the mean
};

Statistics combined(const at::Tensor& rows, std::int64_t channels) {
  const at::Tensor counts = rows.narrow(1, 0, 1), means = rows.narrow(1, 1, channels);
  Statistics result;
  result.count = counts.sum(0).clamp_min(1);  // 0 if all failed: all drop the step
  result.mean = (counts * means).sum(0) / result.count;
  result.m2 = (rows.narrow(1, 1 + channels, channels) + counts * (means - result.mean).square()).sum(0);
  return result;
}

Statistics statistics_of_ranks(const at::Tensor& x, core::NormExchange& ranks) {
  const std::int64_t channels = x.size(1);
  const double count = static_cast<double>(x.numel() / channels);
  const auto [mean, variance] = at::batch_norm_update_stats(x, {}, {}, 0);
  const at::Tensor own = at::full({1}, count, at::device(x.device()).dtype(at::kDouble));
  return combined(ranks.gather(at::cat({own, mean.to(at::kDouble), variance.to(at::kDouble) * count})), channels);
}

// The dtype of statistics for the operators of torch.
at::ScalarType wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor per_channel(const at::Tensor& values, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = values.numel();
  return values.to(wide(x)).view(shape);
}

class Function final : public torch::autograd::Function<Function> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const SyncBatchNorm& norm, core::NormExchange* ranks) {
    const Statistics all = statistics_of_ranks(x, *ranks);
    const at::Tensor variance = all.m2 / all.count, inverse = (variance + norm.eps).rsqrt();
    norm.running_mean.mul_(1 - norm.momentum).add_(all.mean, norm.momentum);
    norm.running_var.mul_(1 - norm.momentum).add_(all.m2 / (all.count - 1).clamp_min(1), norm.momentum);
    context->save_for_backward({x, weight, all.mean, inverse, all.count});
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
    context->saved_data["eps"] = norm.eps;
    return std::get<0>(at::native_batch_norm(x, weight, bias, all.mean.to(wide(x)), variance.to(wide(x)),
                                             /*training=*/false, 0, norm.eps));
  }

  // dx = a (dy - mean(dy) - n mean(dy n)), n the normalised x, a = weight / deviation, the means over all ranks.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &dy = gradients[0], &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3],
                     &count = saved[4];
    auto& ranks = *reinterpret_cast<core::NormExchange*>(context->saved_data["ranks"].toInt());
    const std::int64_t channels = x.size(1);
    const auto [none, d_weight, d_bias] =
        at::native_batch_norm_backward(dy, x, weight, {}, {}, mean.to(wide(x)), inverse.to(wide(x)), /*train=*/true,
                                       context->saved_data["eps"].toDouble(), std::array<bool, 3>{false, true, true});
    const at::Tensor own = at::cat({d_bias.to(at::kDouble), d_weight.to(at::kDouble)});
    const at::Tensor means = ranks.gather(own).sum(0) / count;
    const at::Tensor mean_dy = means.narrow(0, 0, channels), mean_dy_n = means.narrow(0, channels, channels);
    const at::Tensor a = weight.to(at::kDouble) * inverse;
    at::Tensor dx = x.to(wide(x)) - per_channel(mean, x);
    dx.mul_(per_channel(-a * inverse * mean_dy_n, x)).addcmul_(dy.to(wide(x)), per_channel(a, x));
    dx.sub_(per_channel(a * mean_dy, x));
    return {dx.to(x.scalar_type()), d_weight.to(weight.scalar_type()), d_bias.to(weight.scalar_type()), {}, {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& x, const SyncBatchNorm& norm, core::NormExchange& ranks) {
  return Function::apply(x, norm.weight, norm.bias, norm, &ranks);
}

}  // namespace stoker::ops

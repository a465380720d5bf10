// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/rank_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace stoker::train {

void fill_in_for_ranks(const core::Communicator& ranks, const std::vector<core::Parameter>& parameters,
                       at::Tensor& loss_parts, std::size_t terms) {
  if (ranks.size() == 1) {
    return;
  }
  const at::NoGradGuard no_grad;
  for (const core::Parameter& parameter : parameters) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (parameter.tensor.requires_grad() && !gradient.defined()) {
      const bool half = at::isReducedFloatingType(parameter.tensor.scalar_type());  // its gradients are float32
      gradient = at::zeros_like(parameter.tensor, half ? at::kFloat : parameter.tensor.scalar_type());
    }
  }
  if (!loss_parts.defined()) {
    loss_parts = at::zeros({static_cast<std::int64_t>(terms)},
                           at::device(parameters.front().tensor.device()).dtype(at::kDouble));
  }
}

void sum_over_ranks(core::Communicator& ranks, const std::vector<core::Parameter>& parameters, at::Tensor& loss_parts,
                    std::vector<at::Tensor>& norm_buffers) {
  if (ranks.size() == 1) {
    return;
  }
  const at::NoGradGuard no_grad;
  for (const core::Parameter& parameter : parameters) {
    if (parameter.tensor.requires_grad()) {
      ranks.all_reduce_sum(parameter.tensor.mutable_grad());
    }
  }
  ranks.all_reduce_sum(loss_parts);
  for (at::Tensor& buffer : norm_buffers) {  // each rank has seen other samples, but all must evaluate the same model
    if (!buffer.is_floating_point()) {       // a count
      ranks.all_reduce_max(buffer);
      continue;
    }
    ranks.all_reduce_sum(buffer);
    buffer.div_(ranks.size());
  }
}

}  // namespace stoker::train

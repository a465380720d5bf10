// SPDX-License-Identifier: Apache-2.0
// Batch norm in training over the samples of several ranks (as torch.nn.SyncBatchNorm). Called by models/ through
// BatchNorm2d. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include "stoker/core/norm_exchange.h"

namespace stoker::ops {

struct SyncBatchNorm {
  at::Tensor weight, bias;               // [C]
  at::Tensor running_mean, running_var;  // [C], updated with the statistics of all ranks
  double momentum = 0.1;
  double eps = 1e-5;
};

// x: floating [N, C, ...] of this rank, N at least 1; the same shape and dtype come back. Statistics of ranks are
// combined in float64, in the order of ranks (Chan et al., 1979), so they are equal on all of them. Gradients of weight
// and bias are those of this rank's samples. The output may be changed in place. No second derivatives.
[[nodiscard]] at::Tensor sync_batch_norm(const at::Tensor& x, const SyncBatchNorm& norm, core::NormExchange& ranks);

}  // namespace stoker::ops

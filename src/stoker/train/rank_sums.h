// SPDX-License-Identifier: Apache-2.0
// What the ranks of a step exchange after backward: sums of gradients and losses, means of running statistics. Does
// nothing on one rank. Called by train::Step; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/trainable.h"

namespace stoker::train {

// Zeros for what this rank lacks: it has no samples, or a parameter was not used. loss_parts: float64 [terms].
void fill_in_for_ranks(const core::Communicator& ranks, const std::vector<core::Parameter>& parameters,
                       at::Tensor& loss_parts, std::size_t terms);

// Gradients and loss_parts become sums over ranks, norm buffers means; counts among them become the largest.
void sum_over_ranks(core::Communicator& ranks, const std::vector<core::Parameter>& parameters, at::Tensor& loss_parts,
                    std::vector<at::Tensor>& norm_buffers);

}  // namespace stoker::train

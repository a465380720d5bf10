// SPDX-License-Identifier: Apache-2.0
// normalise() with one kernel instead of about ten operators on a few numbers. Used by train::Step. Thread-safe: no
// state.
#pragma once

#include <functional>

#include "stoker/core/loss_terms.h"
#include "stoker/core/step_work.h"

namespace stoker::core {

// Runs divide_terms() on the device of the work's numbers, in the current stream (device::Backend::divide_terms).
using DivideTerms = std::function<void(const LossWork& work)>;

// As normalise(); divide: used if the numbers are not in host memory and all sums are float32.
[[nodiscard]] NormalisedLoss normalise(const LossTerms& terms, const Normalisers& normalisers, const at::Tensor& scale,
                                       const DivideTerms& divide);

}  // namespace stoker::core

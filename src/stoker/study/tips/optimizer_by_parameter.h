// SPDX-License-Identifier: Apache-2.0
// SGD and AdamW as torch::optim takes their steps: a parameter at a time, an operator at a time. What the fused
// kernels of optim/ are measured against. Used by the tips table; one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "stoker/optim/optimizer.h"

namespace stoker::study {

// The maths of optim::make_optimizer with these options. Never skips a step: found_inf is not read. No state is saved.
// ConfigError for names other than "sgd" and "adamw".
[[nodiscard]] std::unique_ptr<optim::Optimizer> make_optimizer_by_parameter(
    const optim::OptimizerOptions& options, const std::vector<core::Parameter>& parameters);

}  // namespace stoker::study

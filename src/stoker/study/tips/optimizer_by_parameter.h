// SPDX-License-Identifier: Apache-2.0
// SGD and AdamW as in torch::optim: one parameter at a time, one operator at a time. The baseline for the fused
// kernels of optim/. Used by the tips table; one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "stoker/optim/optimizer.h"

namespace stoker::study {

// Same results as optim::make_optimizer with these options. Never skips a step: ignores found_inf. Saves no state.
// ConfigError for names other than "sgd" and "adamw".
[[nodiscard]] std::unique_ptr<optim::Optimizer> make_optimizer_by_parameter(
    const optim::OptimizerOptions& options, const std::vector<core::Parameter>& parameters);

}  // namespace stoker::study

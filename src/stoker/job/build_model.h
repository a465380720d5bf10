// SPDX-License-Identifier: Apache-2.0
// Builds a run's network with its weights, on its device, and checks that it fits there. Called by set_up() and by the
// choice of a wider network. One thread.
#pragma once

#include <memory>

#include "stoker/tasks/task.h"

namespace stoker::job {

struct Setup;

// The plan's network, with weights= loaded, which is noted, and frozen as asked. Counts the FLOPs of a sample.
[[nodiscard]] std::unique_ptr<tasks::Model> build_model(Setup& setup);

// ConfigError if memory_limit= does not hold what a step needs besides activations. The weights are there already.
void require_room(const Setup& setup);

// Runs the model on the first batch: errors name what does not match.
void check_first_batch(const Setup& setup);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// Times a few of the run's own steps and evaluation batches before step 1, for the budget of time=. Weights and
// statistics do not change; decoded images may stay in memory for the run. One thread.
#pragma once

#include "stoker/train/time_budget.h"

namespace stoker::job {

struct Setup;

// Uses the run's own batches and loader, with the plan's precision, layout and threads. Takes about a hundredth of
// plan.time per network that is tried, and at least a second; if steps are longer than that, three steps.
[[nodiscard]] train::EpochTime time_epoch(const Setup& setup);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// Times a few of the run's own steps and evaluation batches before step 1, for the budget that time= sets. Weights and
// statistics stay as they were; images that were decoded may stay in memory, where the run finds them. One thread.
#pragma once

#include "stoker/train/time_budget.h"

namespace stoker::job {

struct Setup;

// On the run's own batches, from its own loader, with the plan's precision, layout and threads. Takes about a hundredth
// of plan.time for each network that is tried, a second at least; where steps are longer than that, three steps.
[[nodiscard]] train::EpochTime time_epoch(const Setup& setup);

}  // namespace stoker::job

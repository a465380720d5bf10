// SPDX-License-Identifier: Apache-2.0
// recompute=auto: decides before step 1 which segments backward computes again, and puts them into the plan: as few as
// make the plan's passes fit into memory. Called by make_choices(). One thread.
#pragma once

#include "stoker/train/options.h"

namespace stoker::job {

struct Setup;

// Whether the request asks for it.
[[nodiscard]] bool searches_recomputation(const train::Options& options);

// Sets the plan's recompute: none if a pass fits as it is, else the segments that add the least time, verified by
// forward and backward passes on the first batch, at most 8; all if not even that fits, as smaller passes follow then.
// Leaves nothing else behind.
void choose_recomputation(Setup& setup);

}  // namespace stoker::job

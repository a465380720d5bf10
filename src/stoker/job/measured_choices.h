// SPDX-License-Identifier: Apache-2.0
// The choices of a plan that are measured before step 1: precision, layout, threads, samples per forward pass, what is
// recomputed, epochs that time= allows, and a wider network where they leave room. Called by set_up(). One thread.
#pragma once

#include "stoker/job/request.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

struct Setup;

// saved: the plan to repeat; only what this process must set is done again.
void make_choices(Setup& setup, const Request& request, const train::Facts& facts, const train::Plan* saved,
                  const Say& say);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// The learning rate of a run, from its plan, and what a resume with other values makes of it. Part of Job. Thread-safe:
// no state.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/optim/schedule.h"
#include "stoker/train/plan.h"

namespace stoker::job {

// run_steps: of the whole run; the schedule is as long, unless plan.schedule_steps says otherwise.
[[nodiscard]] optim::ScheduleOptions schedule_of(const train::Plan& plan, std::int64_t run_steps);

// A sentence for people where the learning rate jumps by more than 1 % as a run goes on after `step` steps with other
// values than before: from where to where, and how to keep the schedule. Else empty.
[[nodiscard]] std::string describe_jump(const train::Plan& before, const train::Plan& now, std::int64_t train_samples,
                                        std::int64_t step);

}  // namespace stoker::job

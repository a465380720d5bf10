// SPDX-License-Identifier: Apache-2.0
// The learning rate of a run, from its plan, and the effect of a resume with other values. Part of Job. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/optim/schedule.h"
#include "stoker/train/plan.h"

namespace stoker::job {

// run_steps: of the whole run; the schedule has the same length, unless plan.schedule_steps is set.
[[nodiscard]] optim::ScheduleOptions schedule_of(const train::Plan& plan, std::int64_t run_steps);

// A sentence for people if the learning rate jumps by more than 1 % when a run continues after `step` steps with other
// values: the old and the new rate, and how to keep the schedule. Else empty.
[[nodiscard]] std::string describe_jump(const train::Plan& before, const train::Plan& now, std::int64_t train_samples,
                                        std::int64_t step);

}  // namespace stoker::job

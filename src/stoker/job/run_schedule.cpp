// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_schedule.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/fmt.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

optim::ScheduleOptions schedule_of(const train::Plan& plan, std::int64_t run_steps) {
  const std::int64_t total = plan.schedule_steps > 0 ? plan.schedule_steps : run_steps;
  optim::ScheduleOptions options;
  options.kind = optim::schedule_kind(plan.schedule);
  options.lr = plan.peak_lr();
  options.total_steps = total;
  options.min_factor = plan.lr_end;
  const double steps = plan.warmup < 1 ? plan.warmup * static_cast<double>(total) : plan.warmup;
  options.warmup_steps = std::min(static_cast<std::int64_t>(std::llround(steps)), total - 1);
  options.step_size = std::max<std::int64_t>(1, total / 3);
  optim::check(options);
  return options;
}

std::string describe_jump(const train::Plan& before, const train::Plan& now, std::int64_t train_samples,
                          std::int64_t step) {
  const auto schedule = [&](const train::Plan& plan) {
    return schedule_of(plan, train::total_steps(plan, train_samples));
  };
  const optim::ScheduleOptions old = schedule(before), next = schedule(now);
  const double from = optim::lr_at(old, step), to = optim::lr_at(next, step);
  if (step == 0 || std::abs(to - from) <= 0.01 * std::max(from, to)) {
    return "";
  }
  return fmt::format(
      "the {} schedule had {} steps and now has {}: at step {} the learning rate goes from {:.3g} to {:.3g}; "
      "schedule_steps={} keeps the old schedule, with {:.3g} after its end",
      now.schedule, old.total_steps, next.total_steps, step + 1, from, to, old.total_steps,
      optim::lr_at(old, old.total_steps));
}

}  // namespace stoker::job

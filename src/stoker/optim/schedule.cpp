// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stoker/base/error.h"
#include "stoker/base/nearest.h"

namespace stoker::optim {
namespace {

// From start (at = 0) to end (at = 1) along half a cosine.
double anneal(double start, double end, double at) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * at));
}

// torch.optim.lr_scheduler.OneCycleLR with two phases: the rise ends at step (rise - 1), the fall at the last step.
double one_cycle(const ScheduleOptions& o, double step) {
  const auto total = static_cast<double>(o.total_steps);
  const double rise = o.warmup_steps > 0 ? static_cast<double>(o.warmup_steps) : o.rise_fraction * total;
  const double top = rise - 1, last = total - 1;
  const double start = o.lr / o.start_div, end = start / o.final_div;
  if (step <= top) {
    return top > 0 ? anneal(start, o.lr, step / top) : o.lr;
  }
  return last > top ? anneal(o.lr, end, (step - top) / (last - top)) : end;
}

}  // namespace

double lr_at(const ScheduleOptions& o, std::int64_t step) {
  const std::int64_t at = std::clamp<std::int64_t>(step, 0, std::max<std::int64_t>(o.total_steps - 1, 0));
  if (o.kind == ScheduleKind::kOneCycle) {
    return one_cycle(o, static_cast<double>(at));
  }
  if (at < o.warmup_steps) {
    return o.lr * static_cast<double>(at + 1) / static_cast<double>(o.warmup_steps);
  }
  const std::int64_t body = at - o.warmup_steps;  // steps after the warm-up
  const double progress = static_cast<double>(body) / static_cast<double>(o.total_steps - o.warmup_steps);
  switch (o.kind) {
    case ScheduleKind::kConstant: return o.lr;
    case ScheduleKind::kStep: return o.lr * std::pow(o.gamma, static_cast<double>(body / o.step_size));
    case ScheduleKind::kCosine: return anneal(o.lr, o.lr * o.min_factor, progress);
    case ScheduleKind::kLinear: return o.lr * (1 + (o.min_factor - 1) * progress);
    case ScheduleKind::kOneCycle: break;  // above
  }
  return o.lr;
}

const std::vector<std::string>& known_schedules() {
  static const std::vector<std::string> names{"constant", "step", "cosine", "linear", "one_cycle"};
  return names;
}

ScheduleKind schedule_kind(const std::string& name) {
  const auto& names = known_schedules();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    fail<ConfigError>("optim.schedule", "{}", unknown_name("schedule", name, names));
  }
  return static_cast<ScheduleKind>(found - names.begin());
}

void check(const ScheduleOptions& o) {
  const auto require = [](bool holds, std::string_view key, std::string_view rule, auto value) {
    if (!holds) {
      fail<ConfigError>("optim.schedule", "{} must be {}, got {}", key, rule, value);
    }
  };
  require(std::isfinite(o.lr) && o.lr >= 0, "lr", "finite and at least 0", o.lr);
  require(o.total_steps >= 1, "total_steps", "at least 1", o.total_steps);
  require(o.warmup_steps >= 0 && o.warmup_steps <= o.total_steps, "warmup_steps", "0 to total_steps", o.warmup_steps);
  require(o.min_factor >= 0 && o.min_factor <= 1, "min_factor", "0 to 1", o.min_factor);
  require(o.step_size >= 1, "step_size", "at least 1", o.step_size);
  require(o.gamma > 0 && o.gamma <= 1, "gamma", "above 0 and at most 1", o.gamma);
  require(o.rise_fraction >= 0 && o.rise_fraction <= 1, "rise_fraction", "0 to 1", o.rise_fraction);
  require(std::isfinite(o.start_div) && o.start_div >= 1, "start_div", "finite and at least 1", o.start_div);
  require(std::isfinite(o.final_div) && o.final_div >= 1, "final_div", "finite and at least 1", o.final_div);
}

}  // namespace stoker::optim

// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/time_budget.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/fmt.h"
#include "stoker/train/resolve.h"

namespace stoker::train {
namespace {

void put_measured(Plan& plan, std::string_view key, std::int64_t value, std::string reason) {
  set_value(plan, key, std::to_string(value));
  plan.notes.insert_or_assign(std::string(key), Plan::Note{core::Origin::kMeasured, std::move(reason)});
}

}  // namespace

bool has_time_budget(const Plan& plan, const Options& options) {
  return plan.time > 0 && options.find("epochs") == nullptr && options.find("steps") == nullptr;
}

void fit_time(Plan& plan, std::int64_t train_samples, const EpochTime& time) {
  const std::int64_t epoch_steps = steps_per_epoch(plan, train_samples);
  const double budget = kBudgetShare * plan.time;
  const auto an_epoch = [&](std::int64_t every) {  // times that something happens
    return every > 0 ? static_cast<double>(epoch_steps) / static_cast<double>(every) : 1.0;
  };
  const double evaluations = time.evaluation > 0 ? an_epoch(plan.eval_every) : 0;
  const double judging = evaluations * time.evaluation;
  const double saving = (an_epoch(plan.save_every) + evaluations) * time.save;  // "last", and "best" at each gain
  const double first = time.first + judging + saving, later = time.later + judging + saving;
  const std::string spent =
      fmt::format("an epoch of {} steps takes {:.3g} s, evaluations in it {:.3g} s, checkpoints {:.3g} s", epoch_steps,
                  time.later, judging, saving);
  if (first > budget) {
    // What comes at the epoch's end does not come here, but for one evaluation; what comes every so many steps does.
    const double between = (plan.eval_every > 0 ? evaluations * (time.evaluation + time.save) : 0) +
                           (plan.save_every > 0 ? an_epoch(plan.save_every) * time.save : 0);
    const double step = (time.first + between) / static_cast<double>(epoch_steps);
    const double left = std::max(budget - time.evaluation, budget / 2);  // something to evaluate
    put_measured(plan, "steps", std::clamp<std::int64_t>(static_cast<std::int64_t>(left / step), 1, epoch_steps),
                 fmt::format("time={}s ends within the first epoch: {}", plan.time, spent));
    return;
  }
  const std::int64_t usual = plan.epochs;
  const auto fitting = 1 + static_cast<std::int64_t>((budget - first) / std::max(later, 1e-9));
  put_measured(plan, "epochs", std::min(fitting, kMostTimes * usual),
               fitting <= kMostTimes * usual ? fmt::format("the schedule ends within time={}s: {}", plan.time, spent)
                                             : fmt::format("{} times the recipe's {}; time={}s would do for {}",
                                                           kMostTimes, usual, plan.time, fitting));
}

}  // namespace stoker::train

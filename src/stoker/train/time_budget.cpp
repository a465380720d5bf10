// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/time_budget.h"

#include <algorithm>
#include <cmath>

#include "stoker/base/fmt.h"
#include "stoker/train/plan_options.h"
#include "stoker/train/resolve.h"

namespace stoker::train {
namespace {

// Time of an epoch besides its steps.
struct Spending {
  std::int64_t epoch_steps = 0;
  double budget = 0;                  // seconds of the run
  double evaluations = 0;             // per epoch
  double evaluating = 0, saving = 0;  // seconds for evaluations and checkpoints per epoch
  [[nodiscard]] double beside() const { return evaluating + saving; }
  // How often something happens per epoch.
  [[nodiscard]] double times(std::int64_t every) const {
    return every > 0 ? static_cast<double>(epoch_steps) / static_cast<double>(every) : 1.0;
  }
};

Spending spending_of(const Plan& plan, std::int64_t train_samples, const EpochTime& time) {
  Spending spending;
  spending.epoch_steps = steps_per_epoch(plan, train_samples);
  spending.budget = kBudgetShare * plan.time;
  spending.evaluations = time.evaluation > 0 ? spending.times(plan.eval_every) : 0;
  spending.evaluating = spending.evaluations * time.evaluation;
  spending.saving =
      (spending.times(plan.save_every) + spending.evaluations) * time.save;  // "last", and "best" at each improvement
  return spending;
}

}  // namespace

bool has_time_budget(const Plan& plan, const Options& options) {
  return plan.time > 0 && options.find("epochs") == nullptr && options.find("steps") == nullptr;
}

double epochs_in_time(const Plan& plan, std::int64_t train_samples, const EpochTime& time) {
  const Spending spending = spending_of(plan, train_samples, time);
  const double first = time.first + spending.beside(), later = time.later + spending.beside();
  return first > spending.budget ? spending.budget / first : 1 + (spending.budget - first) / std::max(later, 1e-9);
}

void fit_time(Plan& plan, std::int64_t train_samples, const EpochTime& time) {
  const Spending spending = spending_of(plan, train_samples, time);
  const double fitting = epochs_in_time(plan, train_samples, time);
  const std::string spent =
      fmt::format("an epoch of {} steps takes {:.3g} s, its evaluations {:.3g} s, its checkpoints {:.3g} s",
                  spending.epoch_steps, time.later, spending.evaluating, spending.saving);
  if (fitting < 1) {
    // One evaluation at the end, and those that eval_every and save_every cause in between.
    const double between = (plan.eval_every > 0 ? spending.evaluations * (time.evaluation + time.save) : 0) +
                           (plan.save_every > 0 ? spending.times(plan.save_every) * time.save : 0);
    const double step = (time.first + between) / static_cast<double>(spending.epoch_steps);
    const double left = std::max(spending.budget - time.evaluation, spending.budget / 2);  // something to evaluate
    const auto steps = std::clamp<std::int64_t>(static_cast<std::int64_t>(left / step), 1, spending.epoch_steps);
    decide(plan, "steps", std::to_string(steps), core::Origin::kMeasured,
           fmt::format("time={}s ends within the first epoch: {}", plan.time, spent));
    return;
  }
  const std::int64_t usual = plan.epochs, most = kMostTimes * usual;
  const auto whole = static_cast<std::int64_t>(std::min(fitting, 1e15));
  decide(plan, "epochs", std::to_string(std::min(whole, most)), core::Origin::kMeasured,
         whole <= most ? fmt::format("the schedule ends within time={}s: {}", plan.time, spent)
                       : fmt::format("at most {} times the recipe's {}; time={}s would allow {}", kMostTimes, usual,
                                     plan.time, whole));
}

}  // namespace stoker::train

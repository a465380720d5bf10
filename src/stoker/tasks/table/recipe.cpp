// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/recipe.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "stoker/tasks/recipe_rows.h"

namespace stoker::tasks {
namespace {

// Approximate steps of a run of the default length: on the census rows of UCI's adult, classes overfit after 1,500
// steps; the prices of California's houses still improve at 4,000.
constexpr std::int64_t kClassSteps = 1500, kNumberSteps = 4000;

}  // namespace

bool holds_numbers(const data::TableColumn& target) {
  constexpr std::ptrdiff_t kMostClasses = 20;  // of a target of integers
  if (!target.numeric) {
    return false;
  }
  std::vector<double> values;  // without NaN, which cannot be sorted
  std::ranges::copy_if(target.numbers, std::back_inserter(values), [](double value) { return !std::isnan(value); });
  std::ranges::sort(values);
  const auto different = std::ranges::unique(values).begin() - values.begin();
  return different > kMostClasses || std::ranges::any_of(values, [](double v) { return v != std::floor(v); });
}

std::vector<core::PlanRow> table_recipe(const TableFacts& facts, const std::string& optimizer) {
  const std::int64_t batch = std::clamp<std::int64_t>(facts.train_rows / 50, 16, 256);
  const std::int64_t epoch_steps = std::max<std::int64_t>(1, facts.train_rows / batch);
  const std::int64_t steps = facts.regression ? kNumberSteps : kClassSteps;
  const char* const overfits = "avoids overfitting on small tables";
  RecipeRows plan;
  plan.add("model", "tabular_mlp", "embedded categories, numbers in bins, hidden layers");
  plan.add("optimizer", optimizer.empty() ? "adamw" : optimizer, "adaptive steps");
  plan.add("lr", optimizer == "sgd" ? 0.05 : 1e-3, "a usual first choice");
  plan.add("lr_batch", batch, "the batch that lr is stated for");
  plan.add("weight_decay", optimizer == "sgd" ? 1e-4 : 0.02, overfits);
  plan.add("schedule", "cosine", "down to 0 at the end");
  plan.add("warmup", 0.05, "a share of the run");
  plan.add("batch", batch, "at least 50 steps per epoch where the data allows it");
  plan.add("epochs", std::clamp<std::int64_t>((steps + epoch_steps - 1) / epoch_steps, 5, 100),
           fmt::format("about {} steps", steps));
  plan.add("ema", 0.998, "averaged weights predict better on small data");
  plan.add("target", facts.target, "asked for");
  plan.add("regression", facts.regression ? "on" : "off",
           facts.regression ? "the target holds many different numbers" : "the target holds classes");
  plan.add("label_smoothing", "0", "smoothing would change the probabilities");
  return std::move(plan.rows);
}

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/recipe.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "stoker/base/parse_value.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/recipe_rows.h"
#include "stoker/tasks/sampling.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

// Steps that a run of the default length has, about: on the census rows of UCI's adult classes overfit after 1,500, the
// prices of California's houses still gain at 4,000.
constexpr std::int64_t kClassSteps = 1500, kNumberSteps = 4000;

// Said by the help as the default and by the plan as the value.
constexpr const char* kBins = "32";
constexpr const char* kHidden = "256";
constexpr const char* kLayers = "3";
constexpr const char* kDropout = "0.2";
constexpr const char* kHeader = "on";
// Said by both of no test file.
constexpr const char* kSeededTest = "a seeded fifth of the rows";

}  // namespace

bool holds_numbers(const data::TableColumn& target) {
  constexpr std::ptrdiff_t kMostClasses = 20;  // of a target that is written in whole numbers
  if (!target.numeric) {
    return false;
  }
  std::vector<double> values;  // without NaN, which has no place in an order
  std::ranges::copy_if(target.numbers, std::back_inserter(values), [](double value) { return !std::isnan(value); });
  std::ranges::sort(values);
  const auto different = std::ranges::unique(values).begin() - values.begin();
  return different > kMostClasses || std::ranges::any_of(values, [](double v) { return v != std::floor(v); });
}

std::vector<core::PlanRow> table_recipe(const TableFacts& facts, const std::string& optimizer) {
  const std::int64_t batch = std::clamp<std::int64_t>(facts.train_rows / 50, 16, 256);
  const std::int64_t epoch_steps = std::max<std::int64_t>(1, facts.train_rows / batch);
  const std::int64_t steps = facts.regression ? kNumberSteps : kClassSteps;
  const char* const overfits = "small data is learnt by heart without it";
  RecipeRows plan;
  plan.add("model", "tabular_mlp", "embedded categories, numbers in bins, hidden layers");
  plan.add("optimizer", optimizer.empty() ? "adamw" : optimizer, "adaptive steps");
  plan.add("lr", optimizer == "sgd" ? 0.05 : 1e-3, "the usual first choice");
  plan.add("lr_batch", batch, "the batch that lr is stated for");
  plan.add("weight_decay", optimizer == "sgd" ? 1e-4 : 0.02, overfits);
  plan.add("schedule", "cosine", "down to 0 at the end");
  plan.add("warmup", 0.05, "a share of the run");
  plan.add("batch", batch, "at least 50 steps an epoch where the data allows it");
  plan.add("epochs", std::clamp<std::int64_t>((steps + epoch_steps - 1) / epoch_steps, 5, 100),
           fmt::format("about {} steps", steps));
  plan.add("ema", 0.998, "averaged weights judge and predict better on small data");
  plan.add("target", facts.target, "asked for");
  plan.add("test", "", kSeededTest);
  plan.add("sep", "auto", "what cuts the first line into most fields");
  plan.add("header", kHeader, "the first row names the columns");
  plan.add("regression", facts.regression ? "on" : "off",
           facts.regression ? "the target holds many different numbers" : "the target holds classes");
  plan.add("leave_out", "", "every column is read");
  plan.add("label_strip", "", "labels are taken as they are");
  plan.add("bins", kBins, "quantiles of each number column");
  plan.add("hidden", kHidden, "wide enough for some hundred thousand rows");
  plan.add("layers", kLayers, "hidden layers");
  plan.add("dropout", kDropout, overfits);
  plan.add("label_smoothing", "0", "the probabilities matter");
  plan.add("class_weights", "none", "every row counts the same");
  add_shuffle_row(plan);
  add_sampling_row(plan);
  return std::move(plan.rows);
}

std::vector<core::TaskSetting> table_settings() {
  const auto non_empty = [](std::string_view text) { return !text.empty(); };
  return {
      text_setting("target", "a column's name", "none: it must be given", "what is predicted", non_empty),
      text_setting("test", "a table with the same columns", kSeededTest, "rows to test on"),
      choice_setting("sep", {"auto", ",", ";", "tab", "|"}, "the one that cuts the first line into most fields",
                     "what separates fields"),
      flag_setting("header", kHeader, "whether the first row names the columns; else they are 1, 2, ..."),
      flag_setting("regression", "by the target's values", "predict a number instead of a class"),
      text_setting("leave_out", "columns: id,name", "none", "columns that the model does not read"),
      text_setting("label_strip", "characters", "none", "taken off both ends of the target's labels"),
      whole_setting("bins", 1, 1024, kBins, "pieces that each number column is cut into"),
      whole_setting("hidden", 1, 65536, kHidden, "width of the hidden layers"),
      whole_setting("layers", 1, 100, kLayers, "hidden layers"),
      real_setting("dropout", 0, 0.95, kDropout, "share of hidden values that training drops"),
      label_smoothing_setting(),
      class_weights_setting(),
      shuffle_setting(),
      sampling_setting(),
  };
}

std::vector<std::string> columns_left_out(const core::TaskValues& own) {
  std::vector<std::string> names;
  std::istringstream list(text_or(own, "leave_out", ""));
  for (std::string name; std::getline(list, name, ',');) {
    names.push_back(name);
  }
  return names;
}

data::TableOptions table_options(const core::TaskValues& own) {
  data::TableOptions options;
  const std::string separator = text_or(own, "sep", "auto");
  options.separator = separator == "auto" ? data::TableOptions::kGuess : separator == "tab" ? '\t' : separator.front();
  const std::string header = text_or(own, "header", "auto");
  options.header = header == "auto" || parse_flag("header", header);
  return options;
}

}  // namespace stoker::tasks

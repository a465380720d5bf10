// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/saved_plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/train/options.h"
#include "stoker/train/plan_options.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job";
// How long a run is, how often it evaluates and saves; and how many threads load, who computes what, and how long ranks
// wait, which changes no bit of a sample.
constexpr std::array<std::string_view, 12> kChangeable = {
    "epochs",         "steps",   "time",  "eval_every",   "save_every", "early_stop",
    "schedule_steps", "threads", "ranks", "rank_timeout", "pipeline",   "pipeline_cut"};

}  // namespace

train::Plan read_plan(const std::filesystem::path& file) {
  try {
    return train::plan_from_json(read_text(file));
  } catch (const ConfigError& error) {
    fail<ConfigError>(kWhere, "{}: {}", printable(file.native()), error.what());
  } catch (const DataError& error) {
    fail<ConfigError>(kWhere, "the plan cannot be read: {}", error.what());
  }
}

bool may_change(std::string_view key) { return std::ranges::find(kChangeable, key) != kChangeable.end(); }

void change_plan(train::Plan& plan, const std::string& change) {
  const std::string key = change.substr(0, change.find('='));
  if (!may_change(key)) {
    fail<ConfigError>(kWhere, "a run continues with its plan; only {} and {} may change, not {}",
                      fmt::join(kChangeable.begin(), kChangeable.end() - 1, ", "), kChangeable.back(), printable(key));
  }
  train::Options checked;
  checked.set_assignment(change);
  const auto* asked = checked.find(key);
  if (asked == nullptr) {
    fail<ConfigError>(kWhere, "{}=auto does not say how to continue; set a number", key);
  }
  train::set_value(plan, key, asked->value);
  plan.notes[key] = {core::Origin::kCommandLine, "changed on resume"};
  if (train::Plan::Note& steps = plan.notes["steps"]; key == "epochs" && steps.origin == core::Origin::kMeasured) {
    plan.steps = 0;  // not set by the user: time= allowed less than an epoch
    steps = {core::Origin::kDefault, "epochs decides"};
  }
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/saved_plan.h"

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/train/settings.h"

namespace stoker::job {
namespace {

constexpr std::string_view kWhere = "job";

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

void change_plan(train::Plan& plan, const std::string& change) {
  const std::string key = change.substr(0, change.find('='));
  if (key != "epochs" && key != "steps" && key != "time" && key != "eval_every" && key != "save_every" &&
      key != "early_stop") {
    fail<ConfigError>(kWhere,
                      "a run goes on with its plan; only epochs, steps, time, eval_every, save_every and early_stop "
                      "may change, not {}",
                      printable(key));
  }
  train::Options checked;
  checked.set_assignment(change);
  const auto* asked = checked.find(key);
  if (asked == nullptr) {
    fail<ConfigError>(kWhere, "{}=auto does not say what to go on with; give a number", key);
  }
  train::setting(key).parse(plan, asked->value);
  plan.notes[key] = {core::Origin::kCommandLine, "changed on resume"};
}

}  // namespace stoker::job

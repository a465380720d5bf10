// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/settings_text.h"

#include <algorithm>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/settings.h"

namespace stoker::job {

std::string settings_help() {
  std::string text = "Settings (auto takes a value back to its default):\n";
  for (const auto group : {train::Group::kBehaviour, train::Group::kPerformance}) {
    text += group == train::Group::kBehaviour ? "\n  What is learnt\n" : "\n  How fast it is learnt\n";
    for (const train::Setting& each : train::settings()) {
      if (each.group == group) {
        text += fmt::format("    {:<19} {}\n    {:<19}   {}; default: {}\n", each.key, each.why, "", each.values,
                            each.fallback);
      }
    }
  }
  for (const tasks::TaskKind& kind : tasks::known_tasks()) {
    text += fmt::format("\n  Of {}\n", kind.name);
    for (const core::TaskSetting& each : kind.settings) {
      text += fmt::format("    {:<19} {}\n    {:<19}   {}; default: {}\n", each.key, each.why, "", each.values,
                          each.fallback);
    }
  }
  text +=
      "\n  The run\n"
      "    run                 a name (runs/NAME, then NAME-2, ...) or a path; default: MODEL-DATA\n"
      "    plan                plan.json of another run: repeats it to the bit\n"
      "    data                the data folder, in a config file\n";
  return text;
}

bool is_setting(const std::string& name) {
  const auto own = tasks::all_task_settings();
  return train::find_setting(name) != nullptr || std::ranges::find(own, name, &core::TaskSetting::key) != own.end();
}

std::string plan_table(const train::Plan& plan) {
  std::string text;
  for (const core::PlanRow& row : plan.rows()) {
    const bool chosen = row.origin != core::Origin::kDefault;
    text += fmt::format("{} {:<19} {:<18} {:<13} {}\n", chosen ? "*" : " ", row.key,
                        row.value.empty() ? "-" : printable(row.value), core::origin_name(row.origin), row.reason);
  }
  return text;
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/options_text.h"

#include <algorithm>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/completion.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/plan_options.h"

namespace stoker::job {

std::string options_help() {
  std::string text =
      "Options (KEY=auto means the default, for batch and microbatch a search; \"recipe\" means the defaults for this "
      "task, model and data):\n";
  const auto add = [&](const core::Option& each) {
    text += fmt::format("    {:<19} {}\n    {:<19}   {}; default: {}\n", each.key, each.help, "",
                        core::range_text(each.type), core::default_text(each));
  };
  for (const auto group : {core::OptionGroup::kBehaviour, core::OptionGroup::kPerformance}) {
    text += group == core::OptionGroup::kBehaviour ? "\n  Training\n" : "\n  Speed\n";
    for (const core::Option& each : train::plan_options().options()) {
      if (each.group == group) {
        add(each);
      }
    }
  }
  for (const tasks::TaskKind* kind : tasks::known_tasks()) {
    text += fmt::format("\n  Only for {}: {}\n", kind->name(), kind->info().help);
    std::ranges::for_each(kind->info().options, add);
  }
  text +=
      "\n  The run\n"
      "    run                 name or path of the run folder; if runs/NAME exists, NAME-2 (3, ...) is used;\n"
      "                          default: MODEL-DATA\n"
      "    plan                plan.json of a run to repeat bit for bit\n"
      "    data                the data, instead of the argument DATA\n";
  return text;
}

std::string option_instead(const std::string& command, std::string_view name, std::string_view value) {
  const std::vector<core::Option> all = options_of(command);
  const auto has_name = [&](const core::Option& each) {
    return each.key == name || std::ranges::find(each.also, name) != each.also.end();
  };
  const bool new_run = command == "train" || command == "plan" || command == "tune";
  const bool own = (new_run && (name == "run" || name == "plan" || name == "data")) || core::find_option(all, name);
  const std::string key = own ? std::string(name) : core::near_option(name, all);
  if (key.empty()) {
    return "";
  }
  return own || std::ranges::any_of(all, has_name) ? fmt::format("write {}={}", key, value)
                                                   : fmt::format("did you mean {}={}?", key, value);
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

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/completion.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "stoker/base/error.h"
#include "stoker/job/saved_plan.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/plan_options.h"

namespace stoker::job {
namespace {

std::vector<core::Option> all_options() {
  std::vector<core::Option> all = train::plan_options().options();
  for (const core::Option& each : tasks::all_task_options()) {
    if (core::find_option(all, each.key) == nullptr) {
      all.push_back(each);
    }
  }
  return all;
}

std::vector<std::string> values_of(const core::Option& option) {
  std::vector<std::string> values;
  if (option.key == "task") {
    for (const tasks::TaskKind* kind : tasks::known_tasks()) {
      values.push_back(kind->name());
    }
  } else if (option.key == "model") {
    for (const tasks::TaskKind* kind : tasks::known_tasks()) {
      values.insert(values.end(), kind->info().models.begin(), kind->info().models.end());
    }
  } else if (option.key == "device") {
    values = {"auto", "cpu", "cuda"};
  } else if (const auto* choice = std::get_if<core::Choice>(&option.type)) {
    values = choice->names;
  } else if (std::holds_alternative<core::Flag>(option.type)) {
    values = {"on", "off"};
  }
  return values;
}

// Whether a resume may change the option; all of these options are numbers.
bool changes_on_resume(const core::Option& option) {
  try {
    train::Plan plan;
    change_plan(plan, option.key + "=1");
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// Whether the option says how to read a table.
bool describes_table(const core::Option& option) {
  constexpr std::array kKeys = {"target", "sep", "header", "leave_out", "regression"};
  return std::ranges::find(kKeys, option.key) != kKeys.end();
}

}  // namespace

std::vector<core::Option> options_of(const std::string& command) {
  if (command == "train" || command == "plan" || command == "tune" || command == "profile" ||
      command == "data") {  // bench data
    return all_options();
  }
  std::vector<core::Option> options;
  if (command == "resume") {
    std::ranges::copy_if(train::plan_options().options(), std::back_inserter(options), changes_on_resume);
  } else if (command == "inspect") {
    std::ranges::copy_if(tasks::task_kind("tabular").info().options, std::back_inserter(options), describes_table);
  }
  return options;
}

std::vector<std::string> complete(const std::vector<std::string>& commands, const std::vector<std::string>& flags,
                                  const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  const std::size_t equals = last.find('=');
  std::vector<std::string> candidates;
  if (words.size() <= 1) {
    candidates = commands;
  } else if (last.starts_with('-')) {
    candidates = flags;
  } else if (const std::vector<core::Option> options = options_of(words.front()); equals == std::string::npos) {
    for (const core::Option& each : options) {
      candidates.push_back(each.key + "=");
    }
    if (words.front() == "train" || words.front() == "plan") {
      candidates.insert(candidates.end(), {"run=", "plan="});
    }
  } else if (const core::Option* found = core::find_option(options, last.substr(0, equals))) {
    std::vector<std::string> values = values_of(*found);
    if (found->key == "batch" || found->key == "microbatch") {  // a search
      values.emplace_back("auto");
    }
    for (const std::string& value : values) {
      candidates.push_back(last.substr(0, equals + 1) + value);
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/completion.h"

#include <algorithm>

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

}  // namespace

std::vector<std::string> complete(const std::vector<std::string>& commands, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> candidates;
  if (words.size() <= 1) {
    candidates = commands;
  } else if (const std::string& command = words.front();
             command == "train" || command == "plan" || command == "resume") {
    const std::size_t equals = last.find('=');
    if (equals == std::string::npos) {
      for (const core::Option& each : all_options()) {
        candidates.push_back(each.key + "=");
      }
      candidates.insert(candidates.end(), {"run=", "plan=", "--config", "--quiet", "--json"});
    } else {
      const auto all = all_options();
      if (const core::Option* found = core::find_option(all, last.substr(0, equals))) {
        for (const std::string& value : values_of(*found)) {
          candidates.push_back(last.substr(0, equals + 1) + value);
        }
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/registry.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/tasks/image/task.h"
#include "stoker/tasks/table/task.h"
#include "stoker/tasks/text/task.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.registry";

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const TaskKind& kind : known_tasks()) {
    names.push_back(kind.name);
  }
  return names;
}

// A new kind is one line here.
std::vector<TaskKind>& registry() {
  static std::vector<TaskKind> kinds{
      tabular(),
      language_model(),
      image_classification(),
  };
  return kinds;
}

}  // namespace

const std::vector<TaskKind>& known_tasks() { return registry(); }

void add_task(TaskKind kind) {
  if (kind.name.empty() || std::ranges::find(known_tasks(), kind.name, &TaskKind::name) != known_tasks().end()) {
    fail<ConfigError>(kWhere, "a task called \"{}\" cannot be added: {}; give it another name", printable(kind.name),
                      kind.name.empty() ? "the name is empty" : "there is one already");
  }
  registry().insert(registry().begin(), std::move(kind));
}

const TaskKind& task_kind(const std::string& name) {
  const auto found = std::ranges::find(known_tasks(), name, &TaskKind::name);
  if (found == known_tasks().end()) {
    const std::vector<std::string> names = names_of_kinds();
    fail<ConfigError>(kWhere, "there is no task \"{}\"; did you mean \"{}\"? known: {}", printable(name),
                      nearest(name, names), fmt::join(names, ", "));
  }
  return *found;
}

const TaskKind& recognise_task(const std::filesystem::path& data) {
  const auto& kinds = known_tasks();
  const auto found = std::ranges::find_if(kinds, [&](const TaskKind& kind) { return kind.recognises(data); });
  return found == kinds.end() ? kinds.back() : *found;
}

std::vector<core::TaskSetting> all_task_settings() {
  std::vector<core::TaskSetting> all;
  for (const TaskKind& kind : known_tasks()) {
    for (const core::TaskSetting& each : kind.settings) {
      const auto known = std::ranges::find(all, each.key, &core::TaskSetting::key);
      if (known == all.end()) {
        all.push_back(each);
        continue;
      }
      known->check = [first = known->check, second = each.check](std::string_view text) {
        try {
          first(text);
        } catch (const ConfigError&) {
          second(text);
        }
      };
    }
  }
  return all;
}

void check_own_values(const TaskKind& kind, const core::TaskValues& own) {
  for (const auto& [key, value] : own) {
    const auto has = [&key = key](const TaskKind& each) {
      return std::ranges::find(each.settings, key, &core::TaskSetting::key) != each.settings.end();
    };
    if (has(kind)) {
      std::ranges::find(kind.settings, key, &core::TaskSetting::key)->check(value);
    } else {
      std::vector<std::string> others;
      for (const TaskKind& each : known_tasks()) {
        if (has(each)) {
          others.push_back(each.name);
        }
      }
      fail<ConfigError>(kWhere, "{} means nothing to {}{}; leave it out", printable(key), kind.name,
                        others.empty() ? "" : fmt::format(", it is of {}", fmt::join(others, ", ")));
    }
  }
}

void check_model_name(const std::string& model) {
  std::vector<std::string> names;
  for (const TaskKind& kind : known_tasks()) {
    names.insert(names.end(), kind.models.begin(), kind.models.end());
  }
  if (std::ranges::find(names, model) == names.end()) {
    fail<ConfigError>(kWhere, "there is no model \"{}\"; did you mean \"{}\"? known: {}", printable(model),
                      nearest(model, names), fmt::join(names, ", "));
  }
}

void check_model_of(const TaskKind& kind, const std::string& model) {
  if (std::ranges::find(kind.models, model) == kind.models.end()) {
    fail<ConfigError>(kWhere, "model {} is none of {}, which has {}", printable(model), kind.name,
                      fmt::join(kind.models, ", "));
  }
}

}  // namespace stoker::tasks

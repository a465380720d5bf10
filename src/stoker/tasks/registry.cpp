// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/registry.h"

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/tasks/image/kind.h"
#include "stoker/tasks/table/kind.h"
#include "stoker/tasks/text/kind.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.registry";
using Kinds = std::vector<std::unique_ptr<TaskKind>>;

// A new kind is one line here.
Kinds& registry() {
  static Kinds kinds = [] {
    Kinds all;
    all.push_back(tabular());
    all.push_back(language_model());
    all.push_back(image_classification());
    return all;
  }();
  return kinds;
}

const TaskKind* find_kind(const std::string& name) {
  const auto found = std::ranges::find(registry(), name, [](const auto& kind) { return kind->name(); });
  return found == registry().end() ? nullptr : found->get();
}

}  // namespace

std::vector<const TaskKind*> known_tasks() {
  std::vector<const TaskKind*> kinds;
  for (const auto& kind : registry()) {
    kinds.push_back(kind.get());
  }
  return kinds;
}

void add_task(std::unique_ptr<TaskKind> kind) {
  const std::string& name = kind->name();
  if (name.empty() || find_kind(name) != nullptr) {
    fail<ConfigError>(kWhere, "a task called \"{}\" cannot be added: {}; give it another name", printable(name),
                      name.empty() ? "the name is empty" : "it is already in use");
  }
  registry().insert(registry().begin(), std::move(kind));
}

const TaskKind& task_kind(const std::string& name) {
  const TaskKind* found = find_kind(name);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const TaskKind* kind : known_tasks()) {
      names.push_back(kind->name());
    }
    fail<ConfigError>(kWhere, "{}", unknown_name("task", name, names));
  }
  return *found;
}

const TaskKind& recognise_task(const std::filesystem::path& data) {
  const auto kinds = known_tasks();
  const auto found = std::ranges::find_if(kinds, [&](const TaskKind* kind) { return kind->recognises(data); });
  return found == kinds.end() ? *kinds.back() : **found;
}

std::vector<core::Option> all_task_options() {
  std::vector<core::Option> all;
  for (const TaskKind* kind : known_tasks()) {
    all.insert(all.end(), kind->info().options.begin(), kind->info().options.end());
  }
  return all;
}

void check_own_values(const TaskKind& kind, const core::TaskValues& own) {
  for (const auto& [key, value] : own) {
    if (const core::Option* option = core::find_option(kind.info().options, key)) {
      (void)core::parse_option(*option, value);
      continue;
    }
    std::vector<std::string> others;
    for (const TaskKind* each : known_tasks()) {
      if (core::find_option(each->info().options, key) != nullptr) {
        others.push_back(each->name());
      }
    }
    if (others.empty()) {
      fail<ConfigError>(kWhere, "{} is not an option of {}; remove it", printable(key), kind.name());
    }
    fail<ConfigError>(kWhere, "{} is an option of {}, not of {}; remove it", printable(key), fmt::join(others, " and "),
                      kind.name());
  }
}

void check_model_name(const std::string& model) {
  std::vector<std::string> names;
  for (const TaskKind* kind : known_tasks()) {
    names.insert(names.end(), kind->info().models.begin(), kind->info().models.end());
  }
  if (std::ranges::find(names, model) == names.end()) {
    fail<ConfigError>(kWhere, "{}", unknown_name("model", model, names));
  }
}

void check_model_of(const TaskKind& kind, const std::string& model) {
  const std::vector<std::string>& models = kind.info().models;
  if (std::ranges::find(models, model) == models.end()) {
    fail<ConfigError>(kWhere, "task {} has no model {}; it has {}", kind.name(), printable(model),
                      fmt::join(models, ", "));
  }
}

}  // namespace stoker::tasks

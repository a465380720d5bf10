// SPDX-License-Identifier: Apache-2.0
// The one table of everything a person can ask the engine for: key, range, default in words, why. Parsing, help,
// completion, the plan's rows and its file all read it; adding an option is one line in settings.cpp and one field in
// plan.h. What one kind of task alone knows stands beside that task (core/task_setting.h).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/core/task_setting.h"
#include "stoker/train/plan.h"

namespace stoker::train {

enum class Group { kBehaviour, kPerformance };

struct Setting {
  std::string_view key;
  Group group;
  std::string values;         // what may be given, e.g. "1 ... 1048576" or "auto|cpu|cuda[:n]"
  std::string_view fallback;  // the default in words
  std::string_view why;       // one line for the help
  // Sets the field from text; ConfigError that names key, value and range.
  std::function<void(Plan&, std::string_view)> parse;
  // The field as text that parse() takes back exactly.
  std::function<std::string(const Plan&)> print;
};

[[nodiscard]] std::span<const Setting> settings();
// The setting of that key; null, or ConfigError, where the engine has none of that name.
[[nodiscard]] const Setting* find_setting(std::string_view key);
[[nodiscard]] const Setting& setting(std::string_view key);
// Parses value into the plan's field; a key that is not the engine's becomes a value of the task's own, as it is.
void set_value(Plan& plan, std::string_view key, std::string_view value);

// What was asked for, each value checked on entry. Later calls override earlier ones.
class Options {
 public:
  struct Asked {
    std::string value;
    core::Origin origin = core::Origin::kCommandLine;
  };
  // own: settings that the tasks bring, besides the engine's.
  Options() = default;
  explicit Options(std::vector<core::TaskSetting> own) : own_(std::move(own)) {}

  // "auto" takes a value back to its default. ConfigError for an unknown key, with the nearest one, or a bad value.
  void set(std::string_view key, std::string_view value, core::Origin origin = core::Origin::kCommandLine);
  // The text of key=value.
  void set_assignment(std::string_view assignment, core::Origin origin = core::Origin::kCommandLine);

  [[nodiscard]] const Asked* find(std::string_view key) const;
  [[nodiscard]] const std::map<std::string, Asked, std::less<>>& all() const { return asked_; }
  // What was asked of the tasks' own settings.
  [[nodiscard]] core::TaskValues own_values() const;

 private:
  void check(std::string_view key, std::string_view value) const;

  std::vector<core::TaskSetting> own_;
  std::map<std::string, Asked, std::less<>> asked_;
};

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// The options that were set: keys and texts, each checked on entry. Made by the command line, a config file or a
// program; read by resolve(). A value.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/option.h"
#include "stoker/core/plan_row.h"

namespace stoker::train {

class Options {
 public:
  struct Given {
    std::string value;
    core::Origin origin = core::Origin::kCommandLine;
  };
  // own: options of the tasks, besides those of the engine. A key may occur several times, from tasks that give it
  // different ranges: a value is accepted if one of them allows it.
  Options() = default;
  explicit Options(std::vector<core::Option> own) : own_(std::move(own)) {}

  // "auto" resets a value to its default, and is remembered: for batch, microbatch and recompute it asks for a search.
  // Later calls override earlier ones. ConfigError for an unknown key, with the nearest one, or a bad value.
  void set(std::string_view key, std::string_view value, core::Origin origin = core::Origin::kCommandLine);
  // The text of key=value.
  void set_assignment(std::string_view assignment, core::Origin origin = core::Origin::kCommandLine);

  // Null: not set.
  [[nodiscard]] const Given* find(std::string_view key) const;
  // Whether the value was last set to "auto".
  [[nodiscard]] bool is_auto(std::string_view key) const { return autos_.contains(key); }
  [[nodiscard]] const std::set<std::string, std::less<>>& autos() const { return autos_; }
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] const std::map<std::string, Given, std::less<>>& all() const { return given_; }
  // The values that were set of the tasks' own options.
  [[nodiscard]] core::TaskValues own_values() const;

 private:
  void check(std::string_view key, std::string_view value) const;

  std::vector<core::Option> own_;
  std::map<std::string, Given, std::less<>> given_;
  std::set<std::string, std::less<>> autos_;  // keys
};

}  // namespace stoker::train

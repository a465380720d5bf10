// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/options.h"

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/train/plan_options.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "options";

}  // namespace

void Options::check(std::string_view key, std::string_view value) const {
  std::vector<core::Option> all = plan_options().options();
  all.insert(all.end(), own_.begin(), own_.end());
  std::vector<const core::Option*> named;
  for (const core::Option& each : all) {
    if (each.key == key) {
      named.push_back(&each);
    }
  }
  if (named.empty()) {
    fail<ConfigError>(
        kWhere, "{}",
        unknown_name("option", key, core::near_option(key, all), "`stoker train --help` lists all options"));
  }
  for (std::size_t i = 0; i < named.size() && value != "auto"; ++i) {
    try {
      (void)core::parse_option(*named[i], value);
      return;
    } catch (const ConfigError&) {
      if (i + 1 == named.size()) {
        throw;
      }
    }
  }
}

void Options::set(std::string_view key, std::string_view value, core::Origin origin) {
  check(key, value);
  if (value == "auto") {
    given_.erase(std::string(key));
    autos_.emplace(key);
  } else {
    autos_.erase(std::string(key));
    given_.insert_or_assign(std::string(key), Given{std::string(value), origin});
  }
}

void Options::set_assignment(std::string_view assignment, core::Origin origin) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail<ConfigError>(kWhere, "expected key=value, got \"{}\"", printable(assignment));
  }
  set(assignment.substr(0, equals), assignment.substr(equals + 1), origin);
}

core::TaskValues Options::own_values() const {
  core::TaskValues values;
  for (const auto& [key, given] : given_) {
    if (!plan_options().has(key)) {
      values.emplace(key, given.value);
    }
  }
  return values;
}

const Options::Given* Options::find(std::string_view key) const {
  const auto found = given_.find(key);
  return found == given_.end() ? nullptr : &found->second;
}

std::string Options::text_or(std::string_view key, std::string_view fallback) const {
  const Given* given = find(key);
  return given == nullptr ? std::string(fallback) : given->value;
}

}  // namespace stoker::train

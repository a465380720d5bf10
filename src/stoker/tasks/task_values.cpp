// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/task_values.h"

#include <limits>

#include "stoker/base/error.h"
#include "stoker/base/parse_value.h"

namespace stoker::tasks {

core::TaskSetting whole_setting(std::string key, std::int64_t low, std::int64_t high, std::string fallback,
                                std::string why) {
  return {key, fmt::format("{} ... {}", low, high), std::move(fallback), std::move(why),
          [=](std::string_view text) { (void)parse_whole(key, text, low, high); }};
}

core::TaskSetting real_setting(std::string key, double low, double high, std::string fallback, std::string why) {
  return {key, fmt::format("{} ... {}", low, high), std::move(fallback), std::move(why),
          [=](std::string_view text) { (void)parse_real(key, text, low, high); }};
}

core::TaskSetting choice_setting(std::string key, std::vector<std::string> names, std::string fallback,
                                 std::string why) {
  std::string values = fmt::format("{}", fmt::join(names, "|"));
  return {key, std::move(values), std::move(fallback), std::move(why),
          [=](std::string_view text) { (void)parse_choice(key, text, names); }};
}

core::TaskSetting flag_setting(std::string key, std::string fallback, std::string why) {
  return {key, "on|off", std::move(fallback), std::move(why),
          [=](std::string_view text) { (void)parse_flag(key, text); }};
}

core::TaskSetting text_setting(std::string key, std::string values, std::string fallback, std::string why,
                               std::function<bool(std::string_view)> valid) {
  return {key, values, std::move(fallback), std::move(why), [=](std::string_view text) {
            if (!valid(text)) {
              refuse_value(key, text, values);
            }
          }};
}

std::int64_t whole_value(const core::TaskValues& values, std::string_view key) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return parse_whole(key, text_value(values, key), -kMost, kMost);
}

double real_value(const core::TaskValues& values, std::string_view key) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return parse_real(key, text_value(values, key), -kMost, kMost);
}

bool flag_value(const core::TaskValues& values, std::string_view key) {
  return parse_flag(key, text_value(values, key));
}

const std::string& text_value(const core::TaskValues& values, std::string_view key) {
  const auto found = values.find(key);
  if (found == values.end()) {
    fail<ConfigError>("tasks.values", "the plan lacks \"{}\"", key);
  }
  return found->second;
}

std::filesystem::path whole_path(const std::filesystem::path& named, const std::filesystem::path& data) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path beside = fs::absolute(data).parent_path() / named;  // named itself where that is absolute
  const bool is_beside = !fs::exists(named, error) && fs::exists(beside, error);
  return (is_beside ? beside : fs::absolute(named)).lexically_normal();
}

std::string text_or(const core::TaskValues& values, std::string_view key, std::string_view fallback) {
  const auto found = values.find(key);
  return found == values.end() ? std::string(fallback) : found->second;
}

}  // namespace stoker::tasks

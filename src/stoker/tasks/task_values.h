// SPDX-License-Identifier: Apache-2.0
// What a task does with settings of its own: declares them, and reads their checked text back as what it means. Used by
// the tasks. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/core/task_setting.h"

namespace stoker::tasks {

// fallback: the default in words; why: one line for the help.
[[nodiscard]] core::TaskSetting whole_setting(std::string key, std::int64_t low, std::int64_t high,
                                              std::string fallback, std::string why);
[[nodiscard]] core::TaskSetting real_setting(std::string key, double low, double high, std::string fallback,
                                             std::string why);
[[nodiscard]] core::TaskSetting choice_setting(std::string key, std::vector<std::string> names, std::string fallback,
                                               std::string why);
[[nodiscard]] core::TaskSetting flag_setting(std::string key, std::string fallback, std::string why);
// valid: whether the text may stand there; values: what may, in words.
[[nodiscard]] core::TaskSetting text_setting(
    std::string key, std::string values, std::string fallback, std::string why,
    std::function<bool(std::string_view)> valid = [](std::string_view) { return true; });

// Values by key; ConfigError where one is missing or no longer valid (a plan edited by hand).
[[nodiscard]] std::int64_t whole_value(const core::TaskValues& values, std::string_view key);
[[nodiscard]] double real_value(const core::TaskValues& values, std::string_view key);
[[nodiscard]] bool flag_value(const core::TaskValues& values, std::string_view key);
[[nodiscard]] const std::string& text_value(const core::TaskValues& values, std::string_view key);
// The file that a setting names, as a path that means the same from every folder: from the current folder, or, where
// nothing of that name is there, beside the data.
[[nodiscard]] std::filesystem::path whole_path(const std::filesystem::path& named, const std::filesystem::path& data);
// The text if it is there, else fallback: for values that are asked for before there is a plan.
[[nodiscard]] std::string text_or(const core::TaskValues& values, std::string_view key, std::string_view fallback);

}  // namespace stoker::tasks

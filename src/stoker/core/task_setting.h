// SPDX-License-Identifier: Apache-2.0
// A value that one kind of task alone knows (image_size, context, target): declared beside the task, asked for,
// defaulted and saved like every other value of a plan. Read by train::Options, the help and the tasks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stoker::core {

struct TaskSetting {
  std::string key;
  std::string values;                                // what may be given, e.g. "4 ... 4096" or "none|flip"
  std::string fallback;                              // the default in words
  std::string why;                                   // one line for the help
  std::function<void(std::string_view text)> check;  // ConfigError that names key, value and range
};

// Values of a task's own settings as checked text, by key.
using TaskValues = std::map<std::string, std::string, std::less<>>;

}  // namespace stoker::core

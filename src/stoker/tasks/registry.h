// SPDX-License-Identifier: Apache-2.0
// The kinds of tasks by name: one line of registry.cpp per built-in kind, and the kinds that a program adds. Called by
// job and the command line. Thread-safe, except for add_task().
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// In the order in which they are asked whether they recognise data; the last one takes all other data.
[[nodiscard]] std::vector<const TaskKind*> known_tasks();
// Adds a kind defined by a program. From here on it is used like the others, and is asked before them whether it
// recognises data. On one thread, before the first request. ConfigError for a name that is in use or empty.
void add_task(std::unique_ptr<TaskKind> kind);
// ConfigError with the nearest name for an unknown one.
[[nodiscard]] const TaskKind& task_kind(const std::string& name);
// The kind that recognises the data.
[[nodiscard]] const TaskKind& recognise_task(const std::filesystem::path& data);

// The options of all kinds; a key may occur several times, with different ranges.
[[nodiscard]] std::vector<core::Option> all_task_options();
// ConfigError if the kind has no option with this name, with the kinds that have it, or if a value is out of range.
void check_own_values(const TaskKind& kind, const core::TaskValues& own);
// ConfigError with the nearest name if no kind has a model with this name, or if this kind has not.
void check_model_name(const std::string& model);
void check_model_of(const TaskKind& kind, const std::string& model);

}  // namespace stoker::tasks

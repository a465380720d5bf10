// SPDX-License-Identifier: Apache-2.0
// The kinds of tasks by name: one line of registry.cpp each. Called by job and the command line. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// In the order in which they are asked whether they recognise data; the last one takes what is left.
[[nodiscard]] const std::vector<TaskKind>& known_tasks();
// ConfigError with the nearest name for an unknown one.
[[nodiscard]] const TaskKind& task_kind(const std::string& name);
// The kind that recognises the data.
[[nodiscard]] const TaskKind& recognise_task(const std::filesystem::path& data);

// The settings of all kinds, each key once, with a check that takes what any kind does: whether a value suits the kind
// that is chosen, check_own_values() says.
[[nodiscard]] std::vector<core::TaskSetting> all_task_settings();
// ConfigError where a value is none of the kind's, naming the kinds that have it, or is out of the kind's range.
void check_own_values(const TaskKind& kind, const core::TaskValues& own);
// ConfigError with the nearest name if no kind has a model of that name; or if this one has not.
void check_model_name(const std::string& model);
void check_model_of(const TaskKind& kind, const std::string& model);

}  // namespace stoker::tasks

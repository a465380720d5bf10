// SPDX-License-Identifier: Apache-2.0
// Tables as a kind of task: classes or a number from the other columns. Used by the registry.
#pragma once

#include <memory>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] std::unique_ptr<TaskKind> tabular();

}  // namespace stoker::tasks

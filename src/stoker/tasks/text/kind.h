// SPDX-License-Identifier: Apache-2.0
// Language models as a kind of task: predict the next token of a text. Used by the registry.
#pragma once

#include <memory>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] std::unique_ptr<TaskKind> language_model();

}  // namespace stoker::tasks

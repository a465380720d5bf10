// SPDX-License-Identifier: Apache-2.0
// Language models on text files as a kind of task. Used by the registry.
#pragma once

#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] TaskKind language_model();

}  // namespace stoker::tasks

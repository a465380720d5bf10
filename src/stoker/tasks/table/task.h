// SPDX-License-Identifier: Apache-2.0
// Classification and regression on tables as a kind of task. Used by the registry.
#pragma once

#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] TaskKind tabular();

}  // namespace stoker::tasks

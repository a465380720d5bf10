// SPDX-License-Identifier: Apache-2.0
// Image classification as a kind of task. Used by the registry.
#pragma once

#include <memory>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] std::unique_ptr<TaskKind> image_classification();

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// A cell of a task's table as JSON, for eval and for the report's artifacts. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "stoker/tasks/network_trainable.h"

namespace stoker::job {

// A number that is not finite is written as null.
[[nodiscard]] nlohmann::json cell_json(const tasks::Table::Cell& cell);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// A table of metrics as text and as JSON. Used by eval and `stoker inspect`. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/tasks/network_trainable.h"

namespace stoker::job {

// Columns as wide as their content, at most 40; text left-aligned, numbers right-aligned.
[[nodiscard]] std::string table_text(const tasks::Table& table);
// An array with an object for each row.
[[nodiscard]] nlohmann::ordered_json table_json(const tasks::Table& table);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// A table of figures for people and for programs. Used by eval and `stoker inspect`. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/tasks/network_trainable.h"

namespace stoker::job {

// Columns as wide as they need be, at most 40; text to the left, numbers to the right.
[[nodiscard]] std::string table_text(const tasks::Table& table);
// An array with an object for each row.
[[nodiscard]] nlohmann::ordered_json table_json(const tasks::Table& table);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// The defaults of the tabular task that depend on the target and the number of rows. Called by the table task; no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/data/table/table.h"

namespace stoker::tasks {

// Whether such a target is a number rather than a class: fractions, or more than 20 different values. Missing values
// are ignored.
[[nodiscard]] bool holds_numbers(const data::TableColumn& target);

struct TableFacts {
  std::string target;
  bool regression = false;
  std::int64_t train_rows = 0;
};
// Defaults with reasons: model, batch, epochs, ..., target, regression. optimizer: as set, or empty.
[[nodiscard]] std::vector<core::PlanRow> table_recipe(const TableFacts& facts, const std::string& optimizer);

}  // namespace stoker::tasks

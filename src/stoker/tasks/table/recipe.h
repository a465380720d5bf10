// SPDX-License-Identifier: Apache-2.0
// The defaults and settings of the tabular task: what a run on a table does that nobody asked for, by what the target
// holds and by the number of rows. Called by table_task; no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/core/task_setting.h"
#include "stoker/data/table/table.h"

namespace stoker::tasks {

// Whether a target like this is a number rather than a class: fractions, or more than 20 different values. Missing
// values say nothing.
[[nodiscard]] bool holds_numbers(const data::TableColumn& target);

struct TableFacts {
  std::string target;
  bool regression = false;
  std::int64_t train_rows = 0;
};
// Defaults with reasons: model, batch, epochs, ..., and each of table_settings(). optimizer: asked for, or empty.
[[nodiscard]] std::vector<core::PlanRow> table_recipe(const TableFacts& facts, const std::string& optimizer);

[[nodiscard]] std::vector<core::TaskSetting> table_settings();
// What "sep" and "header" among own mean.
[[nodiscard]] data::TableOptions table_options(const core::TaskValues& own);
// The names in "leave_out".
[[nodiscard]] std::vector<std::string> columns_left_out(const core::TaskValues& own);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// Every option of the engine on one page, plan_options.cpp: key, range, default with its reason, help. A new option is
// one row there and one field in plan.h. Options of only one kind of task are in that task's options.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "stoker/core/option_table.h"
#include "stoker/train/plan.h"

namespace stoker::train {

[[nodiscard]] const core::OptionTable<Plan>& plan_options();

// Parses value into the plan's field. A key that is not the engine's becomes a value of the task, unparsed.
void set_value(Plan& plan, std::string_view key, std::string_view value);

}  // namespace stoker::train

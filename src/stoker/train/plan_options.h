// SPDX-License-Identifier: Apache-2.0
// Every knob of the engine on one page, plan_options.cpp: key, range, default with its reason, help. Adding an option
// is one row there and one field in plan.h. What one kind of task alone knows stands in that task's options.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "stoker/core/option_table.h"
#include "stoker/train/plan.h"

namespace stoker::train {

[[nodiscard]] const core::OptionTable<Plan>& plan_options();

// Parses value into the plan's field; a key that is not the engine's becomes a value of the task, as it is.
void set_value(Plan& plan, std::string_view key, std::string_view value);

}  // namespace stoker::train

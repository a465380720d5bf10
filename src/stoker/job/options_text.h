// SPDX-License-Identifier: Apache-2.0
// The options and a plan's values as text: the help of `stoker train`, the table of `stoker plan` and `stoker info`.
// Thread-safe: no state.
#pragma once

#include <string>

#include "stoker/train/plan.h"

namespace stoker::job {

// Every option with its range, default and reason, grouped; the footer of `stoker train --help`.
[[nodiscard]] std::string options_help();
// Whether `stoker train` has an option of that name.
[[nodiscard]] bool is_option(const std::string& name);
// Key, value, origin and reason of each row, aligned; values that differ from the defaults are marked.
[[nodiscard]] std::string plan_table(const train::Plan& plan);

}  // namespace stoker::job

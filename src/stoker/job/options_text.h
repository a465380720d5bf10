// SPDX-License-Identifier: Apache-2.0
// The options and a plan's values as text: the help of `stoker train`, the table of `stoker plan` and `stoker info`.
// Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "stoker/train/plan.h"

namespace stoker::job {

// Every option with its range, default and reason, grouped; the footer of `stoker train --help`.
[[nodiscard]] std::string options_help();
// For people who write `COMMAND --name value`: "write batch=64" if an option of the command has this name, here or in
// another tool, and "did you mean batch=64?" if one has a similar name; empty: none.
[[nodiscard]] std::string option_instead(const std::string& command, std::string_view name, std::string_view value);
// Key, value, origin and reason of each row, aligned; values that differ from the defaults are marked.
[[nodiscard]] std::string plan_table(const train::Plan& plan);

}  // namespace stoker::job

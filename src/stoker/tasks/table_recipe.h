// SPDX-License-Identifier: Apache-2.0
// The defaults of the tabular task: what a run on a table does that nobody asked for, by what the target holds and by
// the number of rows. Called by table_task; no state.
#pragma once

#include "stoker/data/table.h"

namespace stoker::tasks {

// Whether a target like this is a number rather than a class: fractions, or more than 20 different values. Missing
// values say nothing.
[[nodiscard]] bool holds_numbers(const data::TableColumn& target);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// All options of the tabular task, on one page with options.cpp: parsed once, then read as plain fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/option_table.h"
#include "stoker/data/table/table.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/sampling.h"

namespace stoker::tasks {

struct TableTaskOptions : ClassOptions, SamplingOptions {
  std::string target;  // a column's name
  std::string test;    // a table; empty: none
  std::string sep = "auto";
  bool header = true;
  bool regression = false;  // by the target's values if it is not set
  std::string leave_out;    // names, separated by commas
  std::string label_strip;  // characters
  std::int64_t bins = 32;
  std::int64_t hidden = 256;
  std::int64_t layers = 3;
  double dropout = 0.2;
};

[[nodiscard]] const core::OptionTable<TableTaskOptions>& table_options();

// `sep` and `header` as options of the reader.
[[nodiscard]] data::TableOptions reading_options(const TableTaskOptions& options);
// The names in `leave_out`.
[[nodiscard]] std::vector<std::string> columns_left_out(const TableTaskOptions& options);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// Remarks on a table's columns as text: columns that alone predict the target, and columns that a tabular model cannot
// learn from. Used by the tabular task, as findings, and by `stoker inspect`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/data/table/table.h"

namespace stoker::tasks {

struct ColumnRemark {
  std::string
      id;  // "tells_target", "free_text", "all_other", "row_numbers", "spoilt_numbers", "nothing_left", "header"
  std::string text;    // 'column "alive" alone predicts the target'
  std::string advice;  // 'if ..., set leave_out=alive'
};

struct RemarkOptions {
  std::vector<std::string> left_out = {};  // columns without remarks
  std::string target = {};                 // empty: none
  bool regression = false;
};

// Remarks on the columns in these rows. DataError for a target that is not a column.
[[nodiscard]] std::vector<ColumnRemark> remarks_on(const data::TableData& table, const std::vector<std::int64_t>& rows,
                                                   const RemarkOptions& options);

}  // namespace stoker::tasks

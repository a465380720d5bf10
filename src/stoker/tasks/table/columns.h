// SPDX-License-Identifier: Apache-2.0
// Facts about a table's columns that a person should know before training: the nature of each column, and which columns
// alone predict the target. Used by the tabular task and by `stoker inspect`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/table/table.h"

namespace stoker::tasks {

enum class ColumnNature {
  kConstant,    // one value, or none
  kNumbers,     // ordered values
  kRowNumbers,  // integers, all different, without wide gaps: 1, 2, 3, ...
  kCategories,  // values that repeat
  kSpoilt,      // numbers except for a few texts, which turn all values into categories
  kAllOther,    // texts, nine of ten different: names, keys, dates
  kFreeText,    // sentences
};
// "free text".
[[nodiscard]] std::string_view text_of(ColumnNature nature);

struct ColumnFacts {
  ColumnNature nature = ColumnNature::kConstant;
  std::int64_t missing = 0, different = 0;  // of the given rows; values as written
  double words = 0;                         // of a value on average, if it is not numeric
};
[[nodiscard]] ColumnFacts look_at(const data::TableColumn& column, const std::vector<std::int64_t>& rows);

// The values that are not numbers, of a column that is not numeric.
[[nodiscard]] std::vector<std::string> texts_among_numbers(const data::TableColumn& column);

// The columns that alone predict the target, as indices. From half of the rows, each value gets its most frequent
// target, or the mean target; the other half is predicted with the nearest known value. A column predicts the target if
// it is wrong in at most one of a thousand rows and once per border between classes, and at most a twentieth as often
// as always guessing the most frequent class; for numbers, if a thousandth of the target's variance remains. Of more
// than 20,000 rows, 20,000 are used, spread over all.
// regression: the target is a number column, else classes.
[[nodiscard]] std::vector<std::size_t> columns_that_tell(const data::TableData& table,
                                                         const std::vector<std::int64_t>& rows, std::size_t target,
                                                         bool regression);

}  // namespace stoker::tasks

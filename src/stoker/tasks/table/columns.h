// SPDX-License-Identifier: Apache-2.0
// What a person should know of a table's columns before a model is trained on it: what each one is, and which of them
// alone tell the target. Used by the tabular task and by `stoker inspect`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/table/table.h"

namespace stoker::tasks {

enum class ColumnNature {
  kConstant,    // one value, or none
  kNumbers,     // to be read by size
  kRowNumbers,  // whole numbers, each another, without wide gaps: 1, 2, 3, ...
  kCategories,  // values that repeat
  kSpoilt,      // numbers, but for a few texts, which make categories of them all
  kAllOther,    // texts, nine in ten of them another: names, keys, dates
  kFreeText,    // sentences
};
// "free text".
[[nodiscard]] std::string_view text_of(ColumnNature nature);

struct ColumnFacts {
  ColumnNature nature = ColumnNature::kConstant;
  std::int64_t missing = 0, different = 0;  // of the given rows; values as they are written
  double words = 0;                         // of a value on average, where it is not numeric
};
[[nodiscard]] ColumnFacts look_at(const data::TableColumn& column, const std::vector<std::int64_t>& rows);

// The values that are no numbers, of a column that is not numeric.
[[nodiscard]] std::vector<std::string> texts_among_numbers(const data::TableColumn& column);

// The columns that alone tell the target, as indices. Half of the rows learn for each value what the target mostly is,
// or on average; the other half are told what the nearest known value has. A column tells the target if it is wrong at
// most in one of a thousand rows and once at each border between classes, and at most a twentieth as often as always
// guessing the most frequent class; of numbers, if a thousandth of the target's variance is left. Of more than 20,000
// rows, as many are asked, spread over all.
// regression: the target is a number column, else classes.
[[nodiscard]] std::vector<std::size_t> columns_that_tell(const data::TableData& table,
                                                         const std::vector<std::int64_t>& rows, std::size_t target,
                                                         bool regression);

}  // namespace stoker::tasks

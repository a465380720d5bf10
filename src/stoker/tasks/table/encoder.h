// SPDX-License-Identifier: Apache-2.0
// From the columns of a table to what a network takes: numbers standardised on the training rows, categories as
// indices, the target as classes or a standardised number. Used by the tabular task. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/data/table/table.h"
#include "stoker/tasks/table/encoding.h"

namespace stoker::tasks {

struct LearnOptions {
  std::string target;
  bool regression = false;
  std::string strip = {};                   // characters taken off both ends of the target's labels
  int bins = 32;                            // a number column at most
  std::vector<std::string> leave_out = {};  // columns that are not read
};

// Learnt from the given rows. Columns that say nothing (one value, or none) are left out, aloud. DataError for a target
// that is missing in a row, has one value only, or is no number where one is needed, and for a column to leave out that
// is not there; ConfigError where that is the target.
[[nodiscard]] TableEncoding learn_encoding(const data::TableData& table, const std::vector<std::int64_t>& rows,
                                           const LearnOptions& options, std::vector<std::string>& findings);

struct EncodedTable {
  at::Tensor numbers;     // float32 [rows, number columns + columns that can be missing]
  at::Tensor categories;  // int64 [rows, category columns]
  at::Tensor target;      // int64 [rows], or float32 [rows] standardised; undefined: not encoded
};

// strip: characters taken off both ends of target labels. DataError for a column that is not there, text among
// numbers, and a target label that training has not seen; the last suggests label_strip where that would help.
[[nodiscard]] EncodedTable encode_table(const data::TableData& table, const TableEncoding& encoding,
                                        const std::string& strip);

// The same without a target, which need not be there.
[[nodiscard]] EncodedTable encode_inputs(const data::TableData& table, const TableEncoding& encoding);
// The categories that training has not seen and that count as missing, a sentence a column.
[[nodiscard]] std::vector<std::string> unseen_categories(const data::TableData& table, const TableEncoding& encoding);

// text without the characters at its ends.
[[nodiscard]] std::string stripped(const std::string& text, const std::string& characters);

}  // namespace stoker::tasks

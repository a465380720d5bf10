// SPDX-License-Identifier: Apache-2.0
// Encodes the columns of a table as inputs of a network: numbers standardised with the training rows, categories as
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
  std::string strip = {};                   // characters removed from both ends of the target's labels
  int bins = 32;                            // at most, per number column
  std::vector<std::string> leave_out = {};  // columns that are not used
};

// Learns the encoding from the given rows. Columns without information (at most one value) are not used, which is a
// finding. DataError for a target that is missing in a row, has only one value, or is not a number if one is needed,
// and for a column in leave_out that does not exist; ConfigError if that column is the target.
[[nodiscard]] TableEncoding learn_encoding(const data::TableData& table, const std::vector<std::int64_t>& rows,
                                           const LearnOptions& options, std::vector<std::string>& findings);

struct EncodedTable {
  at::Tensor numbers;     // float32 [rows, number columns + columns that can be missing]
  at::Tensor categories;  // int64 [rows, category columns]
  at::Tensor target;      // int64 [rows], or float32 [rows] standardised; undefined: not encoded
};

// strip: characters removed from both ends of target labels. DataError for a missing column, text among numbers, and a
// target label not seen in training; the last one suggests label_strip if it would help.
[[nodiscard]] EncodedTable encode_table(const data::TableData& table, const TableEncoding& encoding,
                                        const std::string& strip);

// The same without a target, which may be missing.
[[nodiscard]] EncodedTable encode_inputs(const data::TableData& table, const TableEncoding& encoding);
// The categories not seen in training, which count as missing, one sentence per column.
[[nodiscard]] std::vector<std::string> unseen_categories(const data::TableData& table, const TableEncoding& encoding);

// text without these characters at its ends.
[[nodiscard]] std::string stripped(const std::string& text, const std::string& characters);

}  // namespace stoker::tasks

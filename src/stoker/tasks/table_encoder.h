// SPDX-License-Identifier: Apache-2.0
// From the columns of a table to what a network takes: numbers standardised on the training rows, categories as
// indices, the target as classes or a standardised number. What was learnt from the training rows goes into the model's
// card. Used by the tabular task. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/data/table.h"

namespace stoker::tasks {

struct NumberColumn {
  std::string name;
  double mean = 0, deviation = 1;  // of the training rows
  bool has_missing = false;        // a missing value becomes the mean, and says so in a column of its own
  std::vector<double> edges;       // of the bins, standardised, rising; see piecewise()
};

struct CategoryColumn {
  std::string name;
  std::vector<std::string> labels;  // index 1, 2, ...; 0 is missing or never seen
};

struct TableEncoding {
  std::vector<NumberColumn> numbers;
  std::vector<CategoryColumn> categories;
  std::string target;
  std::vector<std::string> classes;              // empty: regression
  double target_mean = 0, target_deviation = 1;  // regression
  [[nodiscard]] bool regression() const { return classes.empty(); }
};

struct LearnOptions {
  std::string target;
  bool regression = false;
  std::string strip = {};  // characters taken off both ends of the target's labels
  int bins = 32;           // a number column at most
};

// Learnt from the given rows. Columns that say nothing (one value, or none) are left out, aloud. DataError for a target
// that is missing in a row, has one value only, or is no number where one is needed.
[[nodiscard]] TableEncoding learn_encoding(const data::TableData& table, const std::vector<std::int64_t>& rows,
                                           const LearnOptions& options, std::vector<std::string>& findings);

struct EncodedTable {
  at::Tensor numbers;     // float32 [rows, number columns + columns that can be missing]
  at::Tensor categories;  // int64 [rows, category columns]
  at::Tensor target;      // int64 [rows], or float32 [rows] standardised
};

// strip: characters taken off both ends of target labels. DataError for a column that is not there, text among
// numbers, and a target label that training has not seen; the last suggests label_strip where that would help.
[[nodiscard]] EncodedTable encode_table(const data::TableData& table, const TableEncoding& encoding,
                                        const std::string& strip);

// text without the characters at its ends.
[[nodiscard]] std::string stripped(const std::string& text, const std::string& characters);

[[nodiscard]] nlohmann::json to_json(const TableEncoding& encoding);
[[nodiscard]] TableEncoding encoding_from_json(const nlohmann::json& json);

}  // namespace stoker::tasks

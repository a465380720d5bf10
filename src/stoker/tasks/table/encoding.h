// SPDX-License-Identifier: Apache-2.0
// The encoding of a tabular model's columns, learned from the training rows: kept in the model's card. Values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::tasks {

struct NumberColumn {
  std::string name;
  double mean = 0, deviation = 1;  // of the training rows
  bool has_missing = false;        // a missing value becomes the mean, and is marked in an extra column
  std::vector<double> edges;       // of the bins, standardised, rising; see TableModel
};

struct CategoryColumn {
  std::string name;
  std::vector<std::string> labels;  // index 1, 2, ...; 0 is missing or not seen in training
};

struct TableEncoding {
  std::vector<NumberColumn> numbers;
  std::vector<CategoryColumn> categories;
  std::string target;
  std::vector<std::string> classes;              // empty: regression
  double target_mean = 0, target_deviation = 1;  // regression
  [[nodiscard]] bool regression() const { return classes.empty(); }
};

// As members of a card.
[[nodiscard]] nlohmann::json to_json(const TableEncoding& encoding);
// CheckpointError, or nlohmann::json::exception, for an inconsistent card.
[[nodiscard]] TableEncoding encoding_from_json(const nlohmann::json& json);

}  // namespace stoker::tasks

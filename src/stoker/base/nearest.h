// SPDX-License-Identifier: Apache-2.0
// The name that a person most likely meant: for error messages about unknown keys, models and optimizers. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Number of characters to insert, remove or replace between two words (Levenshtein, 1966).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replace});
    }
  }
  return row.back();
}

// The name with the smallest edit distance; the first of equals; empty for no names.
inline std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  const auto closer = [&](const std::string& x, const std::string& y) {
    return edit_distance(word, x) < edit_distance(word, y);
  };
  const auto found = std::min_element(names.begin(), names.end(), closer);
  return found == names.end() ? "" : *found;
}

// unknown command "trian"; did you mean "train"? <rest>. Without the question if `near` is empty.
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name, std::string_view near,
                                       std::string_view rest);
// unknown model "rensnet18"; did you mean "resnet18"? known: cnn, resnet18
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name,
                                       const std::vector<std::string>& known);

}  // namespace stoker

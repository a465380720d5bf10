// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker {
namespace {

// Number of characters to insert, remove or replace between two words (Levenshtein, 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
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

}  // namespace

std::string near_name(std::string_view name, const std::vector<std::string>& known) {
  const auto distance = [&](const std::string& each) { return edit_distance(name, each); };
  const auto found = std::ranges::min_element(known, {}, distance);
  if (found == known.end() || distance(*found) >= std::max(name.size(), found->size())) {
    return "";
  }
  return distance(*found) <= std::max<std::size_t>(2, name.size() / 2) ? *found : "";
}

std::string unknown_name(std::string_view what, std::string_view name, std::string_view near, std::string_view rest) {
  return fmt::format("unknown {} \"{}\"; {}{}", what, printable(name),
                     near.empty() ? "" : fmt::format("did you mean \"{}\"? ", printable(near)), rest);
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                         std::string_view rest) {
  return unknown_name(what, name, near_name(name, known), rest);
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  return unknown_name(what, name, known, fmt::format("known: {}", fmt::join(known, ", ")));
}

}  // namespace stoker

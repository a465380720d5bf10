// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/table_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/cell_json.h"

namespace stoker::job {
namespace {

std::string cell_text(const tasks::Table::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return printable(*text);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return std::to_string(*whole);
  }
  const double value = std::get<double>(cell);
  return std::isnan(value) ? "-" : fmt::format("{:.4f}", value);
}

}  // namespace

std::string table_text(const tasks::Table& table) {
  std::string text;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].size();
    for (const auto& row : table.rows) {
      width = std::max(width, std::min<std::size_t>(40, cell_text(row[i]).size()));
    }
    widths.push_back(width);
  }
  const auto put = [&](std::size_t column, const std::string& cell, bool left) {
    text += left ? fmt::format("  {:<{}}", cell, widths[column]) : fmt::format("  {:>{}}", cell, widths[column]);
  };
  const auto is_text = [&](std::size_t column) {
    return !table.rows.empty() && std::holds_alternative<std::string>(table.rows.front()[column]);
  };
  const auto end_line = [&] { text.replace(text.find_last_not_of(' ') + 1, std::string::npos, "\n"); };
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::string heading = table.columns[i];
    std::ranges::replace(heading, '_', ' ');
    put(i, heading, is_text(i));
  }
  end_line();
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      put(i, cell_text(row[i]), is_text(i));
    }
    end_line();
  }
  return text;
}

nlohmann::ordered_json table_json(const tasks::Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[table.columns[i]] = cell_json(row[i]);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace stoker::job

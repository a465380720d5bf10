// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/table/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/data/table/csv.h"
#include "stoker/data/table/packed_text.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.table";
constexpr std::size_t kMostBytes = std::size_t{1} << 32;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool is_missing(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kWords{"?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"};
  return text.empty() || std::ranges::find(kWords, text) != kWords.end();
}

// Collects the values of one column: as numbers while all of them are numbers, and as text in order of appearance.
class ColumnReader {
 public:
  explicit ColumnReader(std::string name) : name_(std::move(name)) {}

  void add(std::string_view text) {
    if (is_missing(text)) {
      numbers_.push_back(kNan);
      ids_.push_back(-1);
      return;
    }
    const auto known = ids_of_.find(std::string(text));
    if (known != ids_of_.end()) {
      ids_.push_back(known->second);
    } else {
      ids_.push_back(static_cast<std::int32_t>(labels_.size()));
      ids_of_.emplace(text, ids_.back());
      labels_.emplace_back(text);
    }
    const std::optional<double> number = numeric_ ? number_in(text) : std::nullopt;
    numeric_ = number.has_value();
    numbers_.push_back(number.value_or(kNan));
  }

  TableColumn finish() {
    TableColumn column;
    column.name = std::move(name_);
    column.numeric = numeric_;  // also if every value is missing
    if (numeric_) {
      column.numbers = std::move(numbers_);
    }
    column.labels = labels_;
    std::ranges::sort(column.labels);
    std::vector<std::int32_t> ranks;
    for (const std::string& label : labels_) {
      ranks.push_back(
          static_cast<std::int32_t>(std::ranges::lower_bound(column.labels, label) - column.labels.begin()));
    }
    for (std::int32_t& id : ids_) {
      id = id < 0 ? -1 : ranks[static_cast<std::size_t>(id)];
    }
    column.ids = std::move(ids_);
    return column;
  }

 private:
  std::string name_;
  bool numeric_ = true;
  std::vector<double> numbers_;
  std::vector<std::int32_t> ids_;
  std::vector<std::string> labels_;  // in order of first appearance
  std::unordered_map<std::string, std::int32_t> ids_of_;
};

std::vector<ColumnReader> name_columns(const std::vector<std::string>& row, bool header, const std::string& file) {
  std::vector<ColumnReader> columns;
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string name = header ? std::string(trimmed(row[i])) : std::to_string(i + 1);
    if (name.empty()) {
      fail<DataError>(kWhere, "{}: column {} has no name; name it, or set header=off", file, i + 1);
    }
    if (!seen.insert(name).second) {
      fail<DataError>(kWhere, "{}: two columns are named \"{}\"; rename one, or set header=off", file, printable(name));
    }
    columns.emplace_back(name);
  }
  return columns;
}

// The separator that gives the first line most fields: ',', ';', a tab or '|'.
char separator_of(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  for (const char each : {',', ';', '\t', '|'}) {
    if (std::ranges::count(line, each) > std::ranges::count(line, best)) {
      best = each;
    }
  }
  return best;
}

}  // namespace

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return whole ? std::optional(value) : std::nullopt;
}

TableData read_table(const std::filesystem::path& path, const TableOptions& options) {
  const std::string file = printable(path.native());
  const std::string text = read_packed_text(path, kMostBytes);
  if (text.find('\0') != std::string::npos) {
    fail<DataError>(kWhere, "{} is not a table: it contains bytes that are not text", file);
  }
  const char separator = options.separator == TableOptions::kGuess ? separator_of(text) : options.separator;
  CsvReader reader(text, file, separator);
  std::vector<std::string> row;
  if (!reader.next(row)) {
    fail<DataError>(kWhere, "{} is empty; expected a table with a header", file);
  }
  std::vector<ColumnReader> columns = name_columns(row, options.header, file);
  TableData table;
  for (bool more = options.header ? reader.next(row) : true; more; more = reader.next(row)) {
    if (row.size() != columns.size()) {
      fail<DataError>(
          kWhere,
          "{}, line {}: {} field{}, but the first row has {}; fix the line, or set sep= if the separator is not \"{}\"",
          file, reader.line(), row.size(), row.size() == 1 ? "" : "s", columns.size(), separator);
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      columns[i].add(trimmed(row[i]));
    }
    ++table.rows;
  }
  if (table.rows == 0) {
    fail<DataError>(kWhere, "{} has a header but no rows", file);
  }
  for (ColumnReader& column : columns) {
    table.columns.push_back(column.finish());
  }
  return table;
}

const TableColumn* named_by_a_number(const TableData& table) {
  const auto is_number = [](const TableColumn& column) { return number_in(column.name).has_value(); };
  const auto found = std::ranges::find_if(table.columns, is_number);
  if (table.columns.size() < 2 || found == table.columns.end()) {
    return nullptr;
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name != std::to_string(i + 1)) {
      return &*found;
    }
  }
  return nullptr;  // read with header=off
}

std::size_t find_column(const TableData& table, const std::string& name) {
  const auto found = std::ranges::find(table.columns, name, &TableColumn::name);
  if (found == table.columns.end()) {
    std::vector<std::string> names;
    for (const TableColumn& column : table.columns) {
      names.push_back(column.name);
    }
    const std::string columns = printable(fmt::format("{}", fmt::join(names, ", ")));
    if (named_by_a_number(table) != nullptr) {
      fail<DataError>(kWhere,
                      "unknown column \"{}\"; the columns are {}. If this row is data, set header=off; then the "
                      "columns are named 1 to {}",
                      printable(name), columns, names.size());
    }
    fail<DataError>(kWhere, "{}", unknown_name("column", name, names, "the columns are " + columns));
  }
  return static_cast<std::size_t>(found - table.columns.begin());
}

}  // namespace stoker::data

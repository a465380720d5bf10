// SPDX-License-Identifier: Apache-2.0
// Reads a text table into columns: numbers if every present value is a number, else categories. Used by the tabular
// task. A function without state; the result is a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

struct TableOptions {
  static constexpr char kGuess = '\0';  // ',', ';', tab or '|', whichever gives the first line most fields
  char separator = ',';
  bool header = true;  // the first row has the column names; else they are "1", "2", ...
};

struct TableColumn {
  std::string name;
  bool numeric = false;
  std::vector<double> numbers;      // if numeric: one value per row; NaN if missing
  std::vector<std::int32_t> ids;    // per row, an index into labels; -1 if missing
  std::vector<std::string> labels;  // the different values as written, also for numbers; sorted bytewise
};

struct TableData {
  std::vector<TableColumn> columns;
  std::int64_t rows = 0;
};

// Reads the file, also if compressed with gzip or Zstandard: RFC 4180 with any separator; ignores spaces around a
// field. Missing values are empty or one of ? NA N/A NaN nan null NULL None. The text "inf" is not a number. DataError
// with file and line for a row with another number of fields, a repeated or empty column name, a file without rows or
// of more than 4 GiB, and for errors of CsvReader and read_packed_text.
[[nodiscard]] TableData read_table(const std::filesystem::path& path, const TableOptions& options);

// The finite number in a field, optionally with a leading plus; nothing for other text, including "inf".
[[nodiscard]] std::optional<double> number_in(std::string_view text);

// The first column whose name is a number, a sign that the first row is data. None if there is no such column, or if
// columns are named "1", "2", ... because there is no header.
[[nodiscard]] const TableColumn* named_by_a_number(const TableData& table);

// The column of that name. DataError if there is none: with the nearest name or, if the first row seems to be data,
// with the setting for it.
[[nodiscard]] std::size_t find_column(const TableData& table, const std::string& name);

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// A table of text read once into columns: numbers where every value that is there is one, categories elsewhere. Used by
// the tabular task. A function without state; the result is a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

struct TableOptions {
  static constexpr char kGuess = '\0';  // of ',', ';', tab and '|' the one that cuts the first line into most fields
  char separator = ',';
  bool header = true;  // the first row names the columns; else they are called "1", "2", ...
};

struct TableColumn {
  std::string name;
  bool numeric = false;
  std::vector<double> numbers;      // numeric: a row's value; NaN where it is missing
  std::vector<std::int32_t> ids;    // a row's value as an index into labels; -1 where it is missing
  std::vector<std::string> labels;  // the different values as they are written, also of numbers; sorted bytewise
};

struct TableData {
  std::vector<TableColumn> columns;
  std::int64_t rows = 0;
};

// Reads the file, also where gzip or Zstandard packed it: RFC 4180 with another separator if need be, spaces around a
// field passed over, and as missing what is empty or one of ? NA N/A NaN nan null NULL None. The text "inf" is no
// number. DataError that names file and line for a row of another width, a repeated or empty column name, a file
// without a row or of more than 4 GiB, and what CsvReader and read_packed_text refuse.
[[nodiscard]] TableData read_table(const std::filesystem::path& path, const TableOptions& options);

// The finite number that a field is, a leading plus allowed; nothing for other text, "inf" among it.
[[nodiscard]] std::optional<double> number_in(std::string_view text);

// The first column whose name is a number, as where the first row is data; none: there is no such column, or columns
// are called "1", "2", ... since no row names them.
[[nodiscard]] const TableColumn* named_by_a_number(const TableData& table);

// The column of that name. DataError where there is none: with the nearest name or, where the first row seems to be
// data, with how to say so.
[[nodiscard]] std::size_t find_column(const TableData& table, const std::string& name);

}  // namespace stoker::data

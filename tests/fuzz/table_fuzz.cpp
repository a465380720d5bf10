// SPDX-License-Identifier: Apache-2.0
// Any text gives rows or a DataError. Rows that are written again with every field in quotes are read as the same rows,
// and each column of a table has one value per row. The first byte chooses the separator and whether there is a header.
#include <algorithm>
#include <cmath>
#include <optional>

#include "fuzz_target.h"
#include "stoker/base/error.h"
#include "stoker/data/table/csv.h"
#include "stoker/data/table/table.h"

namespace stoker::fuzz {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, char separator) {
  data::CsvReader reader(text, "input.csv", separator);
  Rows rows;
  std::int64_t line = 0;
  for (std::vector<std::string> row; reader.next(row);) {
    expect(!row.empty() && reader.line() > line, "a row has a field and its own line");
    line = reader.line();
    rows.push_back(row);
  }
  return rows;
}

std::string quoted(const Rows& rows, char separator) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "\"" : std::string(1, separator) + '"';
      for (const char c : row[i]) {
        text += c == '"' ? "\"\"" : std::string(1, c);
      }
      text += '"';
    }
    text += '\n';
  }
  return text;
}

void check_column(const data::TableColumn& column, std::int64_t rows) {
  expect(!column.name.empty(), "a column has a name");
  expect(std::ssize(column.ids) == rows, "one value per row");
  expect(std::ssize(column.numbers) == (column.numeric ? rows : 0), "one number per row of a numeric column");
  expect(std::ranges::adjacent_find(column.labels, std::greater_equal()) == column.labels.end(), "labels ascend");
  std::vector<bool> seen(column.labels.size());
  for (std::size_t row = 0; row < column.ids.size(); ++row) {
    const std::int32_t id = column.ids[row];
    expect(id >= -1 && id < std::ssize(column.labels), "an id belongs to a label");
    if (id >= 0) {
      seen[static_cast<std::size_t>(id)] = true;
    }
    expect(!column.numeric || std::isnan(column.numbers[row]) == (id < 0),
           "missing values, and only they, are not numbers");
  }
  expect(std::ranges::count(seen, false) == 0, "every label occurs in a row");
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  if (size == 0) {
    return 0;
  }
  static fuzz::MemoryFile memory;
  const char separator = std::string_view(",;\t|")[data[0] % 4];
  const Bytes file = std::as_bytes(std::span(data, size)).subspan(1);
  if (const std::string_view text = as_text(file);
      text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd")) {
    return 0;  // compressed with gzip or Zstandard: the table is made from another text than this
  }
  std::optional<fuzz::Rows> rows;
  try {
    rows = fuzz::rows_of(as_text(file), separator);
  } catch (const DataError&) {
  }
  if (rows) {
    fuzz::expect(fuzz::rows_of(fuzz::quoted(*rows, separator), separator) == *rows, "rows read as they were written");
  }
  try {
    const data::TableOptions options{.separator = separator, .header = (data[0] & 4) != 0};
    const data::TableData table = data::read_table(memory.hold(file), options);
    fuzz::expect(rows && table.rows == std::ssize(*rows) - (options.header ? 1 : 0), "all rows are there");
    fuzz::expect(table.columns.size() == rows->front().size(), "all columns are there");
    for (const data::TableColumn& column : table.columns) {
      fuzz::check_column(column, table.rows);
    }
  } catch (const DataError&) {
  }
  return 0;
}

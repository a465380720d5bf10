// SPDX-License-Identifier: Apache-2.0
// Rows of a comma-separated table (or one with another separator) after RFC 4180: quoted fields with commas, line ends
// and doubled quotes in them; CRLF or LF; a UTF-8 byte order mark is passed over. A quoted field may follow spaces.
// Used by labels.csv and tables. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

class CsvReader {
 public:
  static constexpr std::size_t kMostFields = 16'384;  // of a row: what has more is no table, or has another separator

  // text must outlive the reader; name is what errors call the file.
  CsvReader(std::string_view text, std::string name, char separator = ',');

  // The next row that is not blank; false at the end. fields is reused. DataError with the line for a quote that is
  // never closed, text after a closing quote, or more than kMostFields, before there is memory for them.
  bool next(std::vector<std::string>& fields);
  // The line, from 1, on which the row returned last began.
  [[nodiscard]] std::int64_t line() const { return row_line_; }

 private:
  void read_field(std::string& field);
  void read_quoted(std::string& field);
  bool at_line_end() const;
  void skip_line_end();

  std::string_view text_;
  std::string name_;
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 0;
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Reads rows of a table with commas or another separator, as in RFC 4180: quoted fields may contain separators, line
// ends and doubled quotes; CRLF or LF; ignores a UTF-8 byte order mark and spaces before a quoted field. Used for
// labels.csv and tables. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

class CsvReader {
 public:
  static constexpr std::size_t kMostFields = 16'384;  // per row; with more it is not a table, or the separator is wrong

  // text must outlive the reader; name: of the file, for errors.
  CsvReader(std::string_view text, std::string name, char separator = ',');

  // The next row that is not blank; false at the end. fields is reused. DataError with the line for a quote that is
  // never closed, text after a closing quote, or more than kMostFields fields, before memory is allocated for them.
  bool next(std::vector<std::string>& fields);
  // The line, from 1, where the last returned row began.
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

// SPDX-License-Identifier: Apache-2.0
// RFC 4180, as spreadsheets and Python's csv module write it.
#include "stoker/data/table/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text) {
  CsvReader reader(text, "t.csv");
  Rows rows;
  std::vector<std::string> row;
  while (reader.next(row)) {
    rows.push_back(row);
  }
  return rows;
}

TEST(Csv, ReadsEveryWayOfWriting) {
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    "a,b\r\n1,2\r\n"),
            (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\n\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("\"a, b\",\"say \"\"x\"\"\"\n\"two\nlines\",\n"),
            (Rows{{"a, b", "say \"x\""}, {"two\nlines", ""}}));
  EXPECT_EQ(rows_of("a,,\n"), (Rows{{"a", "", ""}}));
  EXPECT_EQ(rows_of("a\rb,c"), (Rows{{"a\rb", "c"}}));
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("\r\n\n"), Rows{});
}

TEST(Csv, CountsLinesAndRefusesBrokenQuotes) {
  CsvReader reader("a\n\"x\ny\"\nb\n", "t.csv");
  std::vector<std::string> row;
  std::vector<std::int64_t> lines;
  while (reader.next(row)) {
    lines.push_back(reader.line());
  }
  EXPECT_EQ(lines, (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_THROW(rows_of("a\n\"never closed"), DataError);
  EXPECT_THROW(rows_of("\"a\"b,c\n"), DataError);
}

// A header of a billion columns must not allocate a billion strings: too many columns are refused while reading.
TEST(Csv, AHeaderWithoutEndIsRefusedBeforeItTakesMemory) {
  const std::string header(4'000'000, ',');
  CsvReader reader(header, "t.csv");
  std::vector<std::string> row;
  EXPECT_THAT([&] { reader.next(row); },
              ::testing::ThrowsMessage<DataError>(::testing::HasSubstr("t.csv, line 1: more than 16384 fields")));
  EXPECT_LE(row.size(), CsvReader::kMostFields);
  CsvReader widest(std::string_view(header).substr(0, CsvReader::kMostFields - 1), "t.csv");
  ASSERT_TRUE(widest.next(row));
  EXPECT_EQ(row.size(), CsvReader::kMostFields);
}

}  // namespace
}  // namespace stoker::data

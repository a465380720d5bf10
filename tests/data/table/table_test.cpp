// SPDX-License-Identifier: Apache-2.0
// Tables as people have them: with various separators, spaces, quotes, gaps, and values that only look like numbers.
// Errors name the line.
#include "stoker/data/table/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stoker/base/error.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

TableData read(std::string_view text, TableOptions options = {}) {
  const TempFolder folder;
  folder.write("t.csv", text);
  return read_table(folder / "t.csv", options);
}

std::string refusal(std::string_view text, TableOptions options = {}) {
  try {
    (void)read(text, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Table, NumbersCategoriesAndGaps) {
  const TableData table = read(
      "\xEF\xBB\xBF"
      "age, job ,\"pay, yearly\",late\r\n"
      "39, clerk, 1e3, ?\r\n"
      "?, \"smith, black\",-2.5,7\r\n"
      "+17,clerk,NA,  \r\n");
  ASSERT_EQ(table.rows, 3);
  ASSERT_EQ(table.columns.size(), 4U);
  const TableColumn &age = table.columns[0], &job = table.columns[1], &pay = table.columns[2];
  EXPECT_EQ(age.name, "age");
  ASSERT_TRUE(age.numeric);
  EXPECT_EQ(age.numbers[0], 39);
  EXPECT_TRUE(std::isnan(age.numbers[1]));
  EXPECT_EQ(age.numbers[2], 17);
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.labels, (std::vector<std::string>{"clerk", "smith, black"}));
  EXPECT_EQ(job.ids, (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(pay.name, "pay, yearly");
  EXPECT_EQ(pay.numbers[1], -2.5);
  EXPECT_TRUE(std::isnan(pay.numbers[2]));
  EXPECT_EQ(find_column(table, "late"), 3U);
  EXPECT_THROW((void)find_column(table, "lat"), DataError);
}

// One value that is not a number, in any row, turns the column into categories. "inf" and "0x1" are not numbers.
TEST(Table, AColumnIsNumericIfAllOfItIs) {
  for (const char* odd : {"x", "inf", "0x1", "1,5", "1 2", "-"}) {
    for (const bool first : {true, false}) {
      const std::string quoted = fmt::format("\"{}\"", odd);
      const TableData table = read("a\n" + (first ? quoted + "\n1\n2\n" : "1\n2\n" + quoted + "\n"));
      EXPECT_FALSE(table.columns[0].numeric) << odd;
      EXPECT_EQ(table.columns[0].labels.size(), 3U) << odd;
      EXPECT_EQ(table.columns[0].ids.size(), 3U) << odd;
    }
  }
  EXPECT_TRUE(read("a\n?\n?\n").columns[0].numeric);
}

TEST(Table, SeparatorsAndTablesWithoutAHeader) {
  const TempFolder folder;
  folder.write("t.csv", "\"fixed acidity\";\"quality\"\n7,4;5\n");
  const TableData wine = read_table(folder / "t.csv", {.separator = TableOptions::kGuess, .header = true});
  EXPECT_EQ(wine.columns[0].name, "fixed acidity");
  EXPECT_EQ(wine.columns[0].labels, (std::vector<std::string>{"7,4"}));
  folder.write("u.tsv", "1\t2\t3\n4\t5\t6\n");
  const TableData plain = read_table(folder / "u.tsv", {.separator = TableOptions::kGuess, .header = false});
  EXPECT_EQ(plain.rows, 2);
  EXPECT_EQ(plain.columns[2].name, "3");
  EXPECT_EQ(plain.columns[2].numbers, (std::vector<double>{3, 6}));
}

TEST(Table, RefusesWhatIsNotATable) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("\n\n"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("a,b\n"), HasSubstr("no row"));
  EXPECT_THAT(refusal("a,b\n1,2\n1,2,3\n"), AllOf(HasSubstr("line 3"), HasSubstr("3 fields"), HasSubstr("separator")));
  EXPECT_THAT(refusal("a,a\n1,2\n"), HasSubstr("two columns are named \"a\""));
  EXPECT_THAT(refusal("a,\n1,2\n"), AllOf(HasSubstr("column 2 has no name"), HasSubstr("header=off")));
  EXPECT_THAT(refusal("a,b\n1,\"2\n"), AllOf(HasSubstr("line 2"), HasSubstr("never closed")));
  EXPECT_THAT(refusal("a,b\n1,\"2\"x\n"), HasSubstr("after a closing quote"));
  EXPECT_THAT(refusal(std::string(20'000, ',') + "\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("16384 fields"), HasSubstr("check that the separator")));
  EXPECT_THAT(refusal("\x89PNG\r\n\x1A\n" + std::string(1, '\0')), HasSubstr("is not a table"));
}

}  // namespace
}  // namespace stoker::data

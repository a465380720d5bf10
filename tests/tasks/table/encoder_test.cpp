// SPDX-License-Identifier: Apache-2.0
// The encoding of a table: figures computed by hand, values that training never saw, and errors that say what to do.
#include "stoker/tasks/table/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/base/error.h"
#include "support/temp_folder.h"

namespace stoker::tasks {
namespace {

using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

data::TableData table_of(std::string_view text) {
  const TempFolder folder;
  folder.write("t.csv", text);
  return data::read_table(folder / "t.csv", {});
}

std::vector<std::int64_t> first_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

const char* const kPeople =
    "age,job,same,gap,pay\n"
    "10,smith,x,1,low\n"
    "20,clerk,x,?,high\n"
    "30,smith,x,3,low\n"
    "99,baker,y,5,high\n";  // not among the training rows below

TEST(TableEncoder, LearnsFromTheTrainingRowsAlone) {
  std::vector<std::string> findings;
  const data::TableData table = table_of(kPeople);
  const TableEncoding encoding = learn_encoding(table, first_rows(3), {.target = "pay", .bins = 2}, findings);
  EXPECT_EQ(encoding.classes, (std::vector<std::string>{"high", "low"}));
  ASSERT_EQ(encoding.numbers.size(), 2U);
  const double deviation = std::sqrt(200.0 / 3);
  EXPECT_DOUBLE_EQ(encoding.numbers[0].mean, 20);
  EXPECT_DOUBLE_EQ(encoding.numbers[0].deviation, deviation);
  EXPECT_FALSE(encoding.numbers[0].has_missing);
  EXPECT_EQ(encoding.numbers[0].edges, (std::vector<double>{-10 / deviation, 0, 10 / deviation}));
  EXPECT_TRUE(encoding.numbers[1].has_missing);
  ASSERT_EQ(encoding.categories.size(), 1U);
  EXPECT_EQ(encoding.categories[0].labels, (std::vector<std::string>{"clerk", "smith"}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0], AllOf(HasSubstr("\"same\""), HasSubstr("is not used")));

  const EncodedTable rows = encode_table(table, encoding, "");
  EXPECT_EQ(rows.numbers.sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_FLOAT_EQ(rows.numbers[3][0].item<float>(), static_cast<float>(79 / deviation));
  EXPECT_EQ(rows.numbers[1][1].item<float>(), 0);  // the mean
  EXPECT_EQ(rows.numbers[1][2].item<float>(), 1);  // the mark that it is missing
  EXPECT_EQ(rows.numbers[2][2].item<float>(), 0);
  const std::vector<std::int64_t> jobs = {2, 1, 2, 0}, pay = {1, 0, 1, 0};  // a baker was never seen
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(rows.categories[row][0].item<std::int64_t>(), jobs[static_cast<std::size_t>(row)]);
    EXPECT_EQ(rows.target[row].item<std::int64_t>(), pay[static_cast<std::size_t>(row)]);
  }
  const TableEncoding back = encoding_from_json(nlohmann::json::parse(to_json(encoding).dump()));
  EXPECT_EQ(to_json(back), to_json(encoding));
}

TEST(TableEncoder, AColumnWithoutAValueIsLeftOutAloud) {
  std::vector<std::string> findings;
  const data::TableData table = table_of("x,gap,word,y\n1,?,,a\n2,,NA,b\n3,5,late,b\n");
  const TableEncoding encoding = learn_encoding(table, first_rows(2), {.target = "y"}, findings);
  ASSERT_EQ(encoding.numbers.size(), 1U);
  EXPECT_EQ(encoding.numbers[0].name, "x");
  EXPECT_TRUE(encoding.categories.empty());
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0], HasSubstr("\"gap\""));
  EXPECT_THAT(findings[1], HasSubstr("\"word\""));
  EXPECT_EQ(encode_table(table, encoding, "").numbers.sizes(), (std::vector<std::int64_t>{3, 1}));
}

// Rows to predict for need no target. A value that training has not seen counts as missing and is reported.
TEST(TableEncoder, RowsToPredictForNeedNoTarget) {
  std::vector<std::string> findings;
  const TableEncoding encoding =
      learn_encoding(table_of(kPeople), first_rows(3), {.target = "pay", .bins = 2}, findings);
  const data::TableData rows = table_of("job,gap,age\nbaker,1,20\ncook,3,30\nsmith,?,10\n");
  const EncodedTable encoded = encode_inputs(rows, encoding);
  EXPECT_FALSE(encoded.target.defined());
  EXPECT_EQ(encoded.categories[0][0].item<std::int64_t>(), 0);
  EXPECT_EQ(encoded.categories[2][0].item<std::int64_t>(), 2);
  EXPECT_EQ(encoded.numbers[0][0].item<float>(), 0);  // age 20 is the mean
  EXPECT_THAT(unseen_categories(rows, encoding),
              ::testing::ElementsAre(AllOf(HasSubstr("\"job\" has 2 values"), HasSubstr("\"baker\""))));
  EXPECT_TRUE(unseen_categories(table_of(kPeople), learn_encoding(table_of(kPeople), first_rows(4),
                                                                  {.target = "pay", .bins = 2}, findings))
                  .empty());
}

// A column with only numbers in the file to predict for may have been text in training.
TEST(TableEncoder, ACategoryIsKnownAsItIsWritten) {
  std::vector<std::string> findings;
  const data::TableData table = table_of("id,y\n007,a\nabc,b\n1.0,a\n");
  const TableEncoding encoding = learn_encoding(table, first_rows(3), {.target = "y"}, findings);
  const data::TableData rows = table_of("id\n1.0\n007\n");
  ASSERT_TRUE(rows.columns[0].numeric);
  EXPECT_TRUE(unseen_categories(rows, encoding).empty());
  const at::Tensor known = encode_table(table, encoding, "").categories;
  const at::Tensor seen = encode_inputs(rows, encoding).categories;
  EXPECT_EQ(seen[0][0].item<std::int64_t>(), known[2][0].item<std::int64_t>());
  EXPECT_EQ(seen[1][0].item<std::int64_t>(), known[0][0].item<std::int64_t>());
}

TEST(TableEncoder, RegressionStandardisesTheTarget) {
  std::vector<std::string> findings;
  const data::TableData table = table_of("x,y\n1,10\n2,20\n3,60\n");
  const TableEncoding encoding =
      learn_encoding(table, first_rows(3), {.target = "y", .regression = true, .bins = 4}, findings);
  EXPECT_TRUE(encoding.regression());
  EXPECT_DOUBLE_EQ(encoding.target_mean, 30);
  const EncodedTable rows = encode_table(table, encoding, "");
  EXPECT_FLOAT_EQ(rows.target[2].item<float>(), static_cast<float>(30 / encoding.target_deviation));
}

std::string refusal(const char* training, const char* test, LearnOptions options) {
  try {
    std::vector<std::string> findings;
    const data::TableData table = table_of(training);
    const TableEncoding encoding = learn_encoding(table, first_rows(table.rows), options, findings);
    (void)encode_table(table_of(test), encoding, options.strip);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(TableEncoder, SaysWhatIsWrongAndWhatToDo) {
  const char* good = "x,y\n1,a\n2,b\n";
  const LearnOptions y{.target = "y"};
  EXPECT_THAT(refusal(good, "x,y\n1,a.\n2,b.\n", y), AllOf(HasSubstr("\"a.\""), HasSubstr("set label_strip=.")));
  EXPECT_EQ(refusal(good, "x,y\n1,a.\n2,b.\n", {.target = "y", .strip = "."}), "");
  EXPECT_THAT(refusal(good, "x,y\n1,c\n", y), AllOf(HasSubstr("\"c\""), ::testing::Not(HasSubstr("label_strip"))));
  EXPECT_THAT(refusal(good, "z,y\n1,a\n", y), HasSubstr("unknown column \"x\""));
  EXPECT_THAT(refusal(good, "x,y\nblue,a\n", y), HasSubstr("had numbers in training"));
  EXPECT_THAT(refusal(good, "x,y\n1,?\n", y), AllOf(HasSubstr("row 1"), HasSubstr("no value in the target")));
  EXPECT_THAT(refusal(good, good, {.target = "yy"}), HasSubstr("did you mean \"y\"?"));
  EXPECT_THAT(refusal(good, good, {.target = "y", .regression = true}), HasSubstr("remove regression=on"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,a\n", good, y), HasSubstr("only one value"));
  EXPECT_THAT(refusal("x,y\n1,7\n2,7\n", good, {.target = "y", .regression = true}), HasSubstr("only one value"));
  EXPECT_THAT(refusal("x,y\n1,a\n1,b\n", good, y), HasSubstr("nothing to learn from"));  // x is constant
  EXPECT_THAT(refusal("x,y\n?,a\n?,b\n", good, y), HasSubstr("nothing to learn from"));  // x is missing
}

}  // namespace
}  // namespace stoker::tasks

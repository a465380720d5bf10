// SPDX-License-Identifier: Apache-2.0
// The defaults for a table: the target's values decide between classes and a number. A default must not change by
// accident.
#include "stoker/tasks/table/recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "stoker/tasks/table/options.h"
#include "support/default_values.h"

namespace stoker::tasks {
namespace {

data::TableColumn numbers(std::vector<double> values) {
  data::TableColumn column;
  column.numeric = true;
  column.numbers = std::move(values);
  return column;
}

TEST(TableRecipe, FewWholeNumbersAreClassesAlsoWhereSomeAreMissing) {
  const double gap = std::nan("");
  EXPECT_FALSE(holds_numbers(numbers({0, 1, 1, 0})));
  EXPECT_FALSE(holds_numbers(numbers({0, gap, 1, gap, 1, 0})));
  EXPECT_TRUE(holds_numbers(numbers({0, 0.5, 1})));
  EXPECT_TRUE(holds_numbers(numbers({gap, 0.5, 0.5, gap})));
  std::vector<double> grades;  // 20 different values, each many times, with gaps in between
  for (int i = 0; i < 400; ++i) {
    grades.push_back(i % 3 == 0 ? gap : i * 7 % 20);
  }
  EXPECT_FALSE(holds_numbers(numbers(grades)));
  grades.push_back(20);
  EXPECT_TRUE(holds_numbers(numbers(grades)));
  data::TableColumn words;
  words.labels = {"a"};
  words.ids = {0, 0};
  EXPECT_FALSE(holds_numbers(words));
}

std::map<std::string, std::string> values(const TableFacts& facts, const std::string& optimizer = "") {
  std::map<std::string, std::string> result;
  for (const core::PlanRow& row : table_recipe(facts, optimizer)) {
    EXPECT_TRUE(result.emplace(row.key, row.value).second) << row.key << " appears twice";
  }
  return result;
}

TEST(TableRecipe, DefaultsByTargetAndRows) {
  const auto adult = values({"pay", false, 29'305});
  EXPECT_EQ(adult.at("batch"), "256");
  EXPECT_EQ(adult.at("epochs"), "14");  // 114 steps each
  EXPECT_EQ(adult.at("lr"), "0.001");
  EXPECT_EQ(adult.at("target"), "pay");
  EXPECT_EQ(adult.at("regression"), "off");
  const auto houses = values({"price", true, 14'861}, "sgd");
  EXPECT_EQ(houses.at("epochs"), "69");  // 58 steps each
  EXPECT_EQ(houses.at("lr"), "0.05");
  EXPECT_EQ(houses.at("regression"), "on");
  EXPECT_EQ(values({"x", false, 10}).at("epochs"), "100");
}

TEST(TableRecipe, EveryOptionHasADefault) {
  const std::vector<core::PlanRow> rows = table_recipe({"pay", true, 29'305}, "");
  const TableTaskOptions options = table_options().parse(
      stoker::testing::default_values(table_options().options(), rows));  // throws for a missing one
  EXPECT_EQ(options.target, "pay");
  EXPECT_TRUE(options.regression);
  EXPECT_TRUE(options.header);
}

}  // namespace
}  // namespace stoker::tasks

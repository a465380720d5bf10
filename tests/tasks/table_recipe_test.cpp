// SPDX-License-Identifier: Apache-2.0
// What a table gets without asking: classes or a number by the target's values, and defaults that must be meant.
#include "stoker/tasks/table_recipe.h"

#include <gtest/gtest.h>

#include <cmath>

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
  std::vector<double> grades;  // 20 different ones, each many times, with gaps in any order
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

}  // namespace
}  // namespace stoker::tasks

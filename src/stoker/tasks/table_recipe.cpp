// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table_recipe.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stoker::tasks {

bool holds_numbers(const data::TableColumn& target) {
  constexpr std::ptrdiff_t kMostClasses = 20;  // of a target that is written in whole numbers
  if (!target.numeric) {
    return false;
  }
  std::vector<double> values;  // without NaN, which has no place in an order
  std::ranges::copy_if(target.numbers, std::back_inserter(values), [](double value) { return !std::isnan(value); });
  std::ranges::sort(values);
  const auto different = std::ranges::unique(values).begin() - values.begin();
  return different > kMostClasses || std::ranges::any_of(values, [](double v) { return v != std::floor(v); });
}

}  // namespace stoker::tasks

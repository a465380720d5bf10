// SPDX-License-Identifier: Apache-2.0
// Collects the rows of a recipe: defaults with their reasons, in order. Used by the tasks' recipes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/core/plan_row.h"

namespace stoker::tasks {

struct RecipeRows {
  std::vector<core::PlanRow> rows;

  template <typename T>
  void add(std::string key, const T& value, std::string reason) {
    rows.push_back({std::move(key), fmt::format("{}", value), core::Origin::kDefault, std::move(reason)});
  }
};

}  // namespace stoker::tasks

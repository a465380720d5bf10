// SPDX-License-Identifier: Apache-2.0
// The values of a task's options in a plan where the user sets nothing: fixed defaults, then the values of the recipe.
#pragma once

#include <vector>

#include "stoker/core/option.h"
#include "stoker/core/plan_row.h"

namespace stoker::testing {

inline core::TaskValues default_values(const std::vector<core::Option>& options,
                                       const std::vector<core::PlanRow>& recipe) {
  core::TaskValues values;
  for (const core::Option& option : options) {
    if (option.fallback.value) {
      values[option.key] = *option.fallback.value;
    }
  }
  for (const core::PlanRow& row : recipe) {
    if (core::find_option(options, row.key) != nullptr) {
      values[row.key] = row.value;
    }
  }
  return values;
}

}  // namespace stoker::testing

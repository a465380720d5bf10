// SPDX-License-Identifier: Apache-2.0
// What a rule of the doctor says of facts, for tests of rules.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "stoker/observe/doctor/rule.h"

namespace stoker::testing {

// The rule's finding; none if it is healthy or abstains.
inline std::optional<observe::doctor::Finding> finding_of(const observe::doctor::Facts& facts, std::string_view rule) {
  using namespace observe::doctor;
  const auto found = std::ranges::find(rules(), rule, &Rule::id);
  EXPECT_NE(found, rules().end()) << rule;
  Judgement judgement = found->judge(facts);
  auto* const finding = std::get_if<Finding>(&judgement);
  return finding == nullptr ? std::nullopt : std::optional(std::move(*finding));
}

inline bool abstains(const observe::doctor::Facts& facts, std::string_view rule) {
  using namespace observe::doctor;
  return std::holds_alternative<Abstained>(std::ranges::find(rules(), rule, &Rule::id)->judge(facts));
}

}  // namespace stoker::testing

// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/profile_steps.h"

#include "stoker/base/error.h"
#include "stoker/base/parse_value.h"

namespace stoker::train {

ProfileSteps parse_profile(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  constexpr std::int64_t kMany = 1'000'000'000;
  const auto plus = text.find('+');
  ProfileSteps steps;
  steps.first = parse_whole("profile", text.substr(0, plus), 1, kMany);
  steps.steps = plus == text.npos ? kProfileSteps : parse_whole("profile", text.substr(plus + 1), 1, kMostProfileSteps);
  return steps;
}

bool is_profile(std::string_view text) {
  try {
    (void)parse_profile(text);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace stoker::train

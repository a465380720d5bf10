// SPDX-License-Identifier: Apache-2.0
// One value of a plan and where it came from: what `stoker plan` prints and every run saves.
#pragma once

#include <string>
#include <string_view>

namespace stoker::core {

enum class Origin { kDefault, kConfig, kCommandLine, kPlanFile, kMeasured, kAdvice };

struct PlanRow {
  std::string key;
  std::string value;
  Origin origin = Origin::kDefault;
  std::string reason;  // one line: why this value
};

[[nodiscard]] constexpr std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::kDefault: return "default";
    case Origin::kConfig: return "config";
    case Origin::kCommandLine: return "command line";
    case Origin::kPlanFile: return "plan";
    case Origin::kMeasured: return "measured";
    case Origin::kAdvice: return "advice";
  }
  return "";
}

}  // namespace stoker::core

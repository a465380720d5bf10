// SPDX-License-Identifier: Apache-2.0
// The text of the option profile=: which steps of a run are profiled. Used by plan options, resolve() and job.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker::train {

struct ProfileSteps {
  std::int64_t first = 0;  // counted from 1
  std::int64_t steps = 0;
};
inline constexpr std::int64_t kProfileSteps = 20, kMostProfileSteps = 1000;

// "STEP+N", or "STEP" for 20 steps; "": none.
[[nodiscard]] bool is_profile(std::string_view text);
// ConfigError if it is none.
[[nodiscard]] ProfileSteps parse_profile(std::string_view text);

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// Which steps of a run a log for other tools holds: the first 1,000 and about 10,000 more, evenly spaced. The choice
// depends on step numbers alone, so a resumed run logs what an uninterrupted one logs. Values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker::io {

class StepChoice {
 public:
  StepChoice() = default;
  // The steps after first, up to last.
  StepChoice(std::int64_t first, std::int64_t last)
      : last_(last), every_(std::max<std::int64_t>(1, last / kMore)), taken_(first) {}

  // True if the step belongs into the log. Steps ascend; a sink that is slow does not see all of them.
  [[nodiscard]] bool take(std::int64_t step) {
    const bool due = step <= kFirst || step / every_ > taken_ / every_ || step == last_;
    taken_ = due ? step : taken_;
    return due;
  }

 private:
  static constexpr std::int64_t kFirst = 1000, kMore = 10'000;

  std::int64_t last_ = 0;
  std::int64_t every_ = 1;
  std::int64_t taken_ = 0;  // the newest step in the log
};

}  // namespace stoker::io

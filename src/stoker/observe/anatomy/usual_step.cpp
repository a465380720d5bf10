// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/usual_step.h"

#include <algorithm>

namespace stoker::observe {
namespace {

constexpr std::int64_t kAtFirst = 5;  // steps after each of which the medians are brought up to date

}  // namespace

void UsualStep::add(const PhaseSeconds& phases, double seconds) {
  const auto place = static_cast<std::size_t>(count_) % kSteps;
  last_phases_[place] = phases;
  last_seconds_[place] = seconds;
  ++count_;
  if (count_ <= kAtFirst || count_ == 2 * kAtFirst || count_ % kEach == 0) {
    update();
  }
}

void UsualStep::update() {
  const std::size_t count = std::min(static_cast<std::size_t>(count_), kSteps);
  std::array<double, kSteps> column{};
  const auto median = [&](const auto& value) {
    for (std::size_t i = 0; i < count; ++i) {
      column[i] = value(i);
    }
    const auto end = column.begin() + static_cast<std::ptrdiff_t>(count);
    const auto middle = column.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
    std::nth_element(column.begin(), middle, end);
    return *middle;
  };
  seconds_ = median([&](std::size_t i) { return last_seconds_[i]; });
  for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
    phases_[phase] = median([&](std::size_t i) { return last_phases_[i][phase]; });
  }
}

}  // namespace stoker::observe

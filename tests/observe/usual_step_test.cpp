// SPDX-License-Identifier: Apache-2.0
// What is usual, against medians of sorted steps.
#include "stoker/observe/anatomy/usual_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stoker::observe {
namespace {

TEST(UsualStep, IsTheMedianOfTheLastSteps) {
  UsualStep usual;
  std::vector<double> all;
  for (int step = 1; step <= 640; ++step) {
    const double seconds = (step * 37 % 101) * 1e-3 + step;
    PhaseSeconds phases{};
    phases.front() = seconds / 2;
    phases.back() = -seconds;
    usual.add(phases, seconds);
    all.push_back(seconds);
    if (step <= 5 || step == 10 || step % UsualStep::kEach == 0) {
      std::vector<double> last(all.end() - std::min<std::ptrdiff_t>(step, UsualStep::kSteps), all.end());
      std::ranges::sort(last);
      EXPECT_EQ(usual.seconds(), last[(last.size() - 1) / 2]) << step;
      EXPECT_EQ(usual.phases().front(), last[(last.size() - 1) / 2] / 2) << step;
      EXPECT_EQ(usual.phases().back(), -last[last.size() / 2]) << step;
      EXPECT_EQ(usual.phases()[1], 0) << step;
    }
  }
}

TEST(UsualStep, BeforeTheFirstStepItIsNothing) { EXPECT_EQ(UsualStep().seconds(), 0); }

}  // namespace
}  // namespace stoker::observe

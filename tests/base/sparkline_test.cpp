// SPDX-License-Identifier: Apache-2.0
// Lines of characters that show the course of a figure.
#include "stoker/base/sparkline.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <vector>

namespace stoker {
namespace {

using Values = std::vector<double>;

TEST(Sparkline, HasACharacterPerValue) {
  EXPECT_EQ(sparkline(Values{}), "");
  EXPECT_EQ(sparkline(Values{0, 0}), "▁▁") << "no value is the greatest";
  EXPECT_EQ(sparkline(Values{0, 1, 2, 3, 4, 5, 6, 7}), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::deque<double>{7, 0}, {.utf8 = false}), "#_");
}

TEST(Sparkline, LeavesOutWhatIsMissing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sparkline(Values{1, -1, 2}, {.utf8 = false}), "= #");
  EXPECT_EQ(sparkline(Values{kNan, 2, kInf, -kInf}, {.utf8 = false, .missing = "!"}), "!#!!");
}

TEST(Sparkline, TheTopMayBeGiven) { EXPECT_EQ(sparkline(Values{0, 4, 8, 99}, {.utf8 = false, .top = 8}), "_=##"); }

}  // namespace
}  // namespace stoker

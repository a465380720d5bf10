// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/nearest.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(NearName, IsTheClosestNameAndTheFirstOfEquals) {
  EXPECT_EQ(near_name("bacth", {"depth", "batch", "bath"}), "bath");  // bath: one removed; batch: two changed
  EXPECT_EQ(near_name("resnet20", {"resnet18", "resnet34"}), "resnet18");
  EXPECT_EQ(near_name("opt", {"optim", "optic"}), "optim");
}

TEST(NearName, IsEmptyIfNothingIsSimilar) {
  EXPECT_EQ(near_name("epochs", {"batch", "lr"}), "");
  EXPECT_EQ(near_name("z", {"x", "y"}), "");  // no character in common
  EXPECT_EQ(near_name("ab", {"cd", "x"}), "");
  EXPECT_EQ(near_name("xz", {"x", "y"}), "x");
  EXPECT_EQ(near_name("", {"x"}), "");
  EXPECT_EQ(near_name("x", {}), "");
}

}  // namespace
}  // namespace stoker

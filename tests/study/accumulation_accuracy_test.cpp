// SPDX-License-Identifier: Apache-2.0
// Accuracy by schedule on a few pictures: what comes out, in which order, and what is refused.
#include "stoker/study/accumulation_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/picture_set.h"

namespace stoker::study {
namespace {

TEST(AccumulationAccuracy, OneFigureASeedForEveryScheduleOfBothNetworks) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "train/", 22);
  testing::write_striped_set(folder, "test/", 4, 100);
  std::vector<std::string> said;
  AccuracyOptions options{.data = folder.path(), .pictures = 64, .epochs = 1, .seeds = 1};
  options.say = [&](const std::string& text) { said.push_back(text); };
  const std::vector<ScheduleAccuracy> results = accumulation_accuracy(options);
  ASSERT_EQ(results.size(), 6U);
  std::vector<std::string> schedules;
  for (const ScheduleAccuracy& each : results) {
    schedules.push_back(each.model + " " + each.schedule);
    ASSERT_EQ(each.accuracy.size(), 1U);
    EXPECT_GE(each.accuracy[0], 0);
    EXPECT_LE(each.accuracy[0], 1);
  }
  EXPECT_THAT(schedules, ::testing::ElementsAre("resnet34-slim 32 x 1", "resnet34-slim 16 x 2", "resnet34-slim 16 x 1",
                                                "resnet34-slim-no-norm 32 x 1", "resnet34-slim-no-norm 16 x 2",
                                                "resnet34-slim-no-norm 16 x 1"));
  // Without batch norm the two parts of a batch add up to it: the same steps, but for rounding.
  EXPECT_NEAR(results[3].accuracy[0], results[4].accuracy[0], 0.1);
  EXPECT_THAT(said.front(), ::testing::HasSubstr("6 trainings of 1 epochs of 64 pictures, about"));
}

TEST(AccumulationAccuracy, NeedsATestSplit) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "", 4);
  EXPECT_THROW((void)accumulation_accuracy({.data = folder.path()}), ConfigError);
}

}  // namespace
}  // namespace stoker::study

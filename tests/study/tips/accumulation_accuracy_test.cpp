// SPDX-License-Identifier: Apache-2.0
// Accuracy by schedule on a few images: the results, their order, and refusals.
#include "stoker/study/tips/accumulation_accuracy.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/image_set.h"

namespace stoker::study {
namespace {

TEST(AccumulationAccuracy, OneFigureASeedForEveryScheduleOfBothNetworks) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "train/", 22);
  testing::write_striped_set(folder, "test/", 4, 100);
  const data::ImageFolder images = accuracy_images(folder.path(), 64);
  EXPECT_EQ(images.train.size(), 64);
  EXPECT_EQ(images.test.size(), 12);
  std::vector<std::string> said;
  const int before = at::get_num_threads();
  AccuracyOptions options{.epochs = 1, .seeds = 1, .intra_op = before + 1};
  options.say = [&](const std::string& text) {
    said.push_back(text);
    EXPECT_EQ(at::get_num_threads(), before + 1);
  };
  const std::vector<ScheduleAccuracy> results = accumulation_accuracy(images, options);
  EXPECT_EQ(at::get_num_threads(), before);
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
  // Without batch norm, the two halves of a batch add up to the whole: the steps are the same except for rounding.
  EXPECT_NEAR(results[3].accuracy[0], results[4].accuracy[0], 0.1);
  EXPECT_THAT(said.front(), ::testing::HasSubstr("6 trainings, 1 epochs each, 64 images, about"));
}

TEST(AccumulationAccuracy, NeedsABatchOfImages) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "train/", 11);
  testing::write_striped_set(folder, "test/", 2, 100);
  EXPECT_EQ(accuracy_images(folder.path(), 32).train.size(), 32);
  EXPECT_THROW((void)accuracy_images(folder.path(), 31), ConfigError);
}

TEST(AccumulationAccuracy, NeedsATestSplit) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "", 4);
  EXPECT_THROW((void)accuracy_images(folder.path(), 64), ConfigError);
}

TEST(AccumulationAccuracy, StoppingKeepsWhatWasTrainedToItsEnd) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "train/", 11);
  testing::write_striped_set(folder, "test/", 2, 100);
  int asked = 0;  // after each step: 1 of 32, then 1 of 2 x 16, then the first of 2 of 16
  AccuracyOptions options{.epochs = 1, .seeds = 1, .intra_op = 1};
  options.stop = [&] { return ++asked >= 3; };
  const std::vector<ScheduleAccuracy> results = accumulation_accuracy(accuracy_images(folder.path(), 33), options);
  EXPECT_EQ(asked, 3) << "it must stop at once";
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].schedule, "16 x 2");
  EXPECT_EQ(results[1].accuracy.size(), 1U);
}

}  // namespace
}  // namespace stoker::study

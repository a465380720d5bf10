// SPDX-License-Identifier: Apache-2.0
// The schedule of a run that is resumed with other values than it was started with.
#include "stoker/job/run_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

namespace stoker::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 100 samples in batches of 10: 10 steps per epoch.
train::Plan plan_of(std::int64_t epochs) {
  train::Plan plan;
  plan.epochs = epochs;
  plan.batch = 10;
  plan.tail = "keep";
  plan.lr = 1;
  plan.lr_batch = 10;
  plan.lr_scale = "none";
  plan.schedule = "cosine";
  return plan;
}

TEST(RunSchedule, IsAsLongAsTheRunOrAsAskedFor) {
  train::Plan plan = plan_of(4);
  plan.warmup = 0.1;
  EXPECT_EQ(schedule_of(plan, 40).total_steps, 40);
  EXPECT_EQ(schedule_of(plan, 40).warmup_steps, 4);
  plan.schedule_steps = 20;
  EXPECT_EQ(schedule_of(plan, 40).total_steps, 20);
  EXPECT_EQ(schedule_of(plan, 40).warmup_steps, 2);
}

TEST(RunSchedule, MoreEpochsAreSaidToMakeTheRateJump) {
  const train::Plan before = plan_of(2);
  train::Plan now = plan_of(4);
  // Half of the longer cosine: 0.5; the end of the shorter one: (1 + cos(19/20 pi)) / 2 = 0.00616.
  EXPECT_THAT(describe_jump(before, now, 100, 20),
              AllOf(HasSubstr("had 20 steps and now has 40"), HasSubstr("at step 21"),
                    HasSubstr("goes from 0.00616 to 0.5;"), HasSubstr("schedule_steps=20 keeps the old schedule")));
  EXPECT_THAT(describe_jump(now, before, 100, 10), HasSubstr("goes from 0.854 to 0.5;"));
  now.schedule_steps = 20;
  EXPECT_EQ(describe_jump(before, now, 100, 20), "");
  for (std::int64_t step = 0; step < 40; ++step) {
    const double expected =
        (1 + std::cos(std::numbers::pi * static_cast<double>(std::min<std::int64_t>(step, 19)) / 20)) / 2;
    EXPECT_NEAR(optim::lr_at(schedule_of(now, 40), step), expected, 1e-12) << step;
  }
}

TEST(RunSchedule, NoJumpNoFinding) {
  train::Plan before = plan_of(2), now = plan_of(2);
  now.early_stop = 3;
  EXPECT_EQ(describe_jump(before, now, 100, 10), "");
  before.schedule = now.schedule = "constant";
  now.epochs = 5;
  EXPECT_EQ(describe_jump(before, now, 100, 10), "");
  before.schedule = now.schedule = "cosine";
  EXPECT_EQ(describe_jump(before, now, 100, 0), "") << "nothing was trained yet";
}

}  // namespace
}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// time= decides the number of epochs, here with made-up seconds per epoch: the plan ends within it, and with one more
// epoch it would not.
#include "stoker/train/time_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/train/resolve.h"

namespace stoker::train {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSamples = 50'000;

Plan plan_for(double seconds, std::int64_t epochs = 16) {
  Plan plan;
  plan.time = seconds;
  plan.epochs = epochs;
  plan.batch = 500;
  plan.tail = "keep";
  return plan;
}

// Seconds of the whole run, computed from the times that it was planned with.
double run_seconds(const Plan& plan, std::int64_t epochs, const EpochTime& time) {
  const double evaluations = plan.eval_every > 0 ? 100.0 / static_cast<double>(plan.eval_every) : 1;
  return time.first + static_cast<double>(epochs - 1) * time.later +
         static_cast<double>(epochs) * (evaluations * time.evaluation + (1 + evaluations) * time.save);
}

TEST(TimeBudget, TheScheduleEndsWithinItAndUsesIt) {
  const EpochTime time{.first = 14, .later = 10.7, .evaluation = 0.9, .save = 0.1};
  for (const std::int64_t eval_every : {0, 25}) {
    for (const double seconds : {60.0, 600.0, 1000.0}) {
      Plan plan = plan_for(seconds);
      plan.eval_every = eval_every;
      fit_time(plan, kSamples, time);
      EXPECT_LE(run_seconds(plan, plan.epochs, time), kBudgetShare * seconds) << seconds;
      EXPECT_GT(run_seconds(plan, plan.epochs + 1, time), kBudgetShare * seconds) << seconds;
      EXPECT_EQ(plan.epochs, static_cast<std::int64_t>(epochs_in_time(plan, kSamples, time)));
      EXPECT_EQ(plan.steps, 0);
      const Plan::Note& note = plan.notes.find("epochs")->second;
      EXPECT_EQ(note.origin, core::Origin::kMeasured);
      EXPECT_THAT(note.reason, HasSubstr("the schedule ends within time="));
      EXPECT_THAT(note.reason, HasSubstr("an epoch of 100 steps takes 10.7 s"));
    }
  }
}

TEST(TimeBudget, WhereNoEpochFitsItDecidesTheSteps) {
  const EpochTime time{.first = 100, .later = 90, .evaluation = 15};
  Plan plan = plan_for(50);
  fit_time(plan, kSamples, time);
  EXPECT_DOUBLE_EQ(epochs_in_time(plan_for(50), kSamples, time), 46.0 / 115);
  EXPECT_EQ(plan.steps, 31) << "46 s minus an evaluation of 15 s, at 1 s per step";
  EXPECT_EQ(total_steps(plan, kSamples), 31);
  EXPECT_THAT(plan.notes.find("steps")->second.reason, HasSubstr("ends within the first epoch"));
  Plan short_one = plan_for(0.001);
  fit_time(short_one, kSamples, time);
  EXPECT_EQ(short_one.steps, 1);
  Plan evaluated = plan_for(50);  // an evaluation longer than the time limit leaves half of the time
  fit_time(evaluated, kSamples, {.first = 100, .later = 90, .evaluation = 500});
  EXPECT_EQ(evaluated.steps, 23);
}

TEST(TimeBudget, TheStepsOfAnEpochThatDoesNotFitAreItsStepsAtMost) {
  Plan long_evaluation = plan_for(60);
  fit_time(long_evaluation, kSamples, {.first = 5, .later = 5, .evaluation = 60});
  EXPECT_EQ(long_evaluation.steps, 100) << "27.6 s are enough for 552 steps, with evaluations of 60 s in between";
  Plan often = plan_for(60);
  often.eval_every = 10;
  fit_time(often, kSamples, {.first = 50, .later = 50, .evaluation = 1});
  EXPECT_EQ(often.steps, 90) << "55.2 s minus an evaluation, at 0.6 s per step with its share of the evaluations";
}

TEST(TimeBudget, ASmallSetIsNotTrainedForHours) {
  Plan plan = plan_for(3600, 12);
  fit_time(plan, kSamples, {.first = 0.1, .later = 0.1, .evaluation = 0});
  EXPECT_EQ(plan.epochs, 12 * kMostTimes);
  EXPECT_THAT(plan.notes.find("epochs")->second.reason, HasSubstr("8 times the recipe's 12"));
}

TEST(TimeBudget, WhatWasAskedForComesFirst) {
  const Plan plan = plan_for(600);
  Options none, epochs, steps;
  epochs.set_assignment("epochs=3", core::Origin::kCommandLine);
  steps.set_assignment("steps=100", core::Origin::kConfig);
  EXPECT_TRUE(has_time_budget(plan, none));
  EXPECT_FALSE(has_time_budget(plan, epochs));
  EXPECT_FALSE(has_time_budget(plan, steps));
  EXPECT_FALSE(has_time_budget(plan_for(0), none));
}

}  // namespace
}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// The policy of microbatches: halves, grows with patience, never goes below what the model accepts, and its schedule
// can be saved and repeated.
#include "stoker/memory/microbatch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::memory {
namespace {

void clean_steps(Microbatch& policy, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    policy.step_done();
  }
}

TEST(Microbatch, HalvesDownToTheSmallestPass) {
  Microbatch policy({.asked = 0, .smallest = 1});
  std::vector<std::int64_t> largest{policy.largest_pass(100)};
  while (policy.shrink(100)) {
    largest.push_back(policy.largest_pass(100));
  }
  EXPECT_EQ(largest, (std::vector<std::int64_t>{100, 50, 25, 13, 7, 4, 2, 1}));
  EXPECT_EQ(policy.largest_pass(100), 1) << "a refusal changes nothing";
}

// The property that batch norm needs: no pass of any batch has fewer samples than the model accepts.
TEST(Microbatch, NoPassIsSmallerThanTheModelAccepts) {
  for (const std::int64_t smallest : {1, 2, 3}) {
    for (std::int64_t asked = 0; asked <= 9; ++asked) {
      Microbatch policy({.asked = asked, .smallest = smallest});
      do {
        for (std::int64_t samples = smallest; samples <= 40; ++samples) {
          const std::int64_t passes = policy.passes(samples);
          ASSERT_GE(passes, 1);
          ASSERT_GE(samples / passes, smallest) << samples << " samples in " << passes;
        }
      } while (policy.shrink(37));
    }
  }
}

TEST(Microbatch, EachHalvingMakesMorePasses) {
  for (std::int64_t samples = 1; samples <= 65; ++samples) {
    Microbatch policy({.asked = 0, .smallest = 2});
    std::int64_t before = policy.passes(samples);
    while (policy.shrink(samples)) {
      ASSERT_GT(policy.passes(samples), before);
      before = policy.passes(samples);
    }
  }
}

TEST(Microbatch, GrowsAfterAHundredCleanStepsAndWaitsTwiceAsLongAfterAFailure) {
  Microbatch policy({.asked = 64});
  EXPECT_FALSE(policy.may_grow());
  policy.begin_step(5);
  ASSERT_TRUE(policy.shrink(64));
  clean_steps(policy, 99);
  EXPECT_FALSE(policy.may_grow());
  EXPECT_TRUE(policy.may_grow_soon());
  clean_steps(policy, 1);
  ASSERT_TRUE(policy.may_grow());
  policy.begin_step(105);
  policy.grow();
  EXPECT_EQ(policy.largest_pass(64), 64);
  EXPECT_EQ(schedule_text(policy.schedule()), "5:32,105:64");
  ASSERT_TRUE(policy.shrink(64));  // in the same step: it never ran with 64
  EXPECT_EQ(schedule_text(policy.schedule()), "5:32");
  clean_steps(policy, 199);
  EXPECT_FALSE(policy.may_grow());
  clean_steps(policy, 1);
  EXPECT_TRUE(policy.may_grow());
}

TEST(Microbatch, GrowsBackToTheWholeBatch) {
  Microbatch policy({.asked = 0});
  ASSERT_TRUE(policy.shrink(48));
  ASSERT_TRUE(policy.shrink(48));
  for (int i = 0; i < 2; ++i) {
    clean_steps(policy, Microbatch::kPatience);
    ASSERT_TRUE(policy.may_grow());
    policy.grow();
  }
  EXPECT_EQ(policy.passes(48), 1);
  clean_steps(policy, 1000);
  EXPECT_FALSE(policy.may_grow()) << "it has what was asked for";
}

TEST(Microbatch, RepeatsAScheduleAndNothingElse) {
  Microbatch policy({.asked = 64, .repeat = parse_schedule("3:16,120:64")});
  for (std::int64_t step = 1; step <= 130; ++step) {
    policy.begin_step(step);
    ASSERT_EQ(policy.largest_pass(64), step < 3 || step >= 120 ? 64 : 16) << step;
    ASSERT_FALSE(policy.may_grow());
    policy.step_done();
  }
  EXPECT_EQ(schedule_text(policy.schedule()), "3:16,120:64");
}

TEST(Microbatch, ItsStateGoesOnWhereItWas) {
  Microbatch policy({.asked = 64});
  policy.begin_step(7);
  ASSERT_TRUE(policy.shrink(64));
  clean_steps(policy, 60);
  core::State state;
  policy.save_state(state);
  Microbatch resumed({.asked = 64});
  resumed.load_state(state);
  EXPECT_EQ(resumed.largest_pass(64), 32);
  EXPECT_EQ(resumed.schedule(), policy.schedule());
  clean_steps(resumed, 39);
  EXPECT_FALSE(resumed.may_grow());
  clean_steps(resumed, 1);
  EXPECT_TRUE(resumed.may_grow());
  resumed.load_state({});  // a checkpoint of Stoker 0.2
  state.tensors.begin()->second = at::zeros({3}, at::kFloat);
  EXPECT_THROW(resumed.load_state(state), CheckpointError);
}

TEST(Microbatch, AScheduleIsText) {
  EXPECT_TRUE(parse_schedule("").empty());
  for (const char* good : {"1:1", "18:32,118:64", "5:0"}) {
    EXPECT_EQ(schedule_text(parse_schedule(good)), good);
  }
  for (const char* bad : {"x", "1", "1:", "1:2,", "2:3,1:4", "0:3", "1:2;3:4", "1:-2", "1:2 "}) {
    EXPECT_FALSE(is_schedule(bad)) << bad;
  }
}

}  // namespace
}  // namespace stoker::memory

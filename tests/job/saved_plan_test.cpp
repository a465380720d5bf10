// SPDX-License-Identifier: Apache-2.0
// The changes that a resume may make to a saved plan.
#include "stoker/job/saved_plan.h"

#include <gtest/gtest.h>

namespace stoker::job {
namespace {

TEST(SavedPlan, EpochsOverruleStepsThatOnlyTimeHadSet) {
  train::Plan plan;
  plan.epochs = 16;
  plan.steps = 25;
  plan.notes["steps"] = {core::Origin::kMeasured, "time=60s ends within the first epoch"};
  change_plan(plan, "time=1h");
  EXPECT_EQ(plan.steps, 25);
  change_plan(plan, "epochs=3");
  EXPECT_EQ(plan.epochs, 3);
  EXPECT_EQ(plan.steps, 0);

  plan.steps = 25;
  plan.notes["steps"] = {core::Origin::kCommandLine, "asked for"};
  change_plan(plan, "epochs=4");
  EXPECT_EQ(plan.steps, 25) << "steps= overrules epochs=";
}

}  // namespace
}  // namespace stoker::job

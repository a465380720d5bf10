// SPDX-License-Identifier: Apache-2.0
// A process that was watched from outside, with stacks and without.
#include "stoker/observe/doctor/process_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/observe/doctor/examine.h"
#include "support/doctor_rules.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using ::testing::AllOf;
using testing::finding_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProcessSlice slice(double fetch_share, int workers) {
  ProcessSlice slice{.seconds = 2,
                     .figures = {{"process.cpu_cores", 1}, {"machine.busy_cores", 1.1}, {"machine.cores", 8}},
                     .children_cpu_seconds = 0,
                     .stacks = StackSamples{}};
  const auto fetching = static_cast<std::int64_t>(100 * fetch_share);
  slice.stacks->parts = {{"fetch", fetching}, {"backward", 100 - fetching}};
  slice.stacks->all = 100;
  slice.stacks->workers = workers;
  slice.stacks->sites = {{"fetch", "/home/a/data.py:31", "__getitem__", "", fetching}};
  return slice;
}

TEST(ProcessFacts, ALoaderWithoutWorkersIsSeenFromOutside) {
  const Facts facts = process_facts("process 7", {slice(0.8, 0), slice(0.9, 0)});
  EXPECT_EQ(facts.source, Source::kProcess);
  EXPECT_DOUBLE_EQ(facts.seconds(), 4);
  EXPECT_EQ(facts.window(), "4 s");
  EXPECT_NEAR(*facts.share("fetch"), 0.85, 1e-9);
  EXPECT_DOUBLE_EQ(*facts.figure("process.cpu_cores"), 1);
  const Diagnosis diagnosis = examine(facts);
  ASSERT_FALSE(diagnosis.found.empty());
  EXPECT_THAT(diagnosis.verdict, AllOf(HasSubstr("waits for data 85 % of the time"), HasSubstr("num_workers=0"),
                                       HasSubstr("__getitem__ (/home/a/data.py:31)")));
}

// Four workers that are at a sample for three quarters of the time and compute for half of that.
TEST(ProcessFacts, WorkersThatSleepAreTold) {
  ProcessSlice one = slice(0.6, 4);
  one.stacks->of_workers = 400;
  one.stacks->samples = 280;
  one.stacks->collate = 20;
  one.children_cpu_seconds = 3;
  const Facts facts = process_facts("process 7", {one, one});
  const core::SourceFigures& loader = *facts.periods[0].loader;
  EXPECT_EQ(loader.threads, 4);
  const core::StageSums sums = core::sum_of(loader.stages);
  EXPECT_NEAR(sums.seconds, 0.75 * 8, 1e-9);
  EXPECT_NEAR(sums.cpu_seconds, 3, 1e-9);
  EXPECT_NEAR(sums.asleep_seconds, 3, 1e-9);
  EXPECT_TRUE(finding_of(facts, "input_wait"));
}

TEST(ProcessFacts, WithoutStacksNothingIsCalledHealthy) {
  ProcessSlice one = slice(0.9, 0);
  one.stacks.reset();
  const Facts facts = process_facts("process 7", {one, one});
  EXPECT_FALSE(facts.share("fetch"));
  for (const char* rule :
       {"input_wait", "checkpoint_stall", "tracker_cost", "recompiles", "gc_churn", "kept_history"}) {
    EXPECT_TRUE(abstains(facts, rule)) << rule;
  }
  const Diagnosis diagnosis = examine(facts);
  EXPECT_THAT(diagnosis.found, IsEmpty());
  EXPECT_THAT(diagnosis.verdict, HasSubstr("From outside nothing was found"));
  EXPECT_THAT(examine(process_facts("process 7", {slice(0.9, 0)})).verdict, HasSubstr("too short to tell"));
}

}  // namespace
}  // namespace stoker::observe::doctor

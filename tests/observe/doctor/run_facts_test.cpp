// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/run_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/observe/doctor/examine.h"
#include "support/temp_folder.h"

namespace stoker::observe::doctor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempFolder;

// Four periods of 2 s with 100 steps; half of the last three is waiting. A step after a checkpoint takes 50 ms, not 20.
std::string records() {
  std::string lines = R"({"event":"run_started","title":"cnn on files","first_step":0})"
                      "\n";
  for (int period = 1; period <= 4; ++period) {
    const int last = 100 * period;
    for (int step = last - 99; step <= last; ++step) {
      const double seconds = step == 251 || step == 351 || step % 100 == 11 ? 0.05 : 0.02;
      lines += R"({"event":"step","epoch":0,"step":)" + std::to_string(step) + R"(,"samples":8,"seconds":)" +
               std::to_string(seconds) + R"(,"scalars":{"loss":1,"seconds":7}})" + "\n";
      if (step % 100 == 10 || step == 250 || step == 350) {
        lines += R"({"event":"checkpoint","step":)" + std::to_string(step) + R"(,"kind":"last"})" + "\n";
        lines += R"({"event":"checkpoint","step":)" + std::to_string(step) + R"(,"kind":"best"})" + "\n";
      }
    }
    lines += R"({"event":"anatomy","version":1,"step":)" + std::to_string(last) +
             R"(,"steps":100,"seconds":2,"phases":[{"name":"fetch","seconds":)" + (period == 1 ? "1.9" : "1") +
             R"(,"cpu_seconds":0.25},{"name":"forward","seconds":0.9}],"marks":[]})" + "\n";
    lines += R"({"event":"fed","step":)" + std::to_string(last) +
             R"(,"seconds":2,"waited":1,"samples":800,"threads":2,"loader":{"read":0.5,"decode":3.5},"copy":0,)"
             R"("loader_cpu":{"read":0.1},"loader_asleep":{"read":0.4},"cores":2})"
             "\n";
    lines += R"({"event":"monitor","version":1,"seconds":)" + std::to_string(period) +
             R"(,"figures":{"process.cpu_cores":)" + std::to_string(period) + "}}\n";
  }
  lines +=
      R"({"event":"anatomy","step":400,"steps":400,"seconds":8,"whole":true,"phases":[{"name":"fetch","seconds":5}]})"
      "\n";
  return lines + R"({"event":"slow_step","step":5,"seconds":1,"usual_seconds":0.1,"phase":"fetch","cause":"early"})"
                 "\n"
                 R"({"event":"slow_step","step":305,"seconds":1,"usual_seconds":0.1,"phase":"fetch","cause":"late"})"
                 "\n";
}

class RunFacts : public ::testing::Test {
 protected:
  RunFacts() {
    folder_.write("plan.json", R"({"format":2,"plan":{"threads":{"value":"2","origin":"default","reason":"x"}}})");
    folder_.write("machine.json", R"({"cores":8,"cores_used":4})");
  }
  [[nodiscard]] Facts read() const { return run_facts(folder_.path()); }
  TempFolder folder_;
};

TEST_F(RunFacts, JoinsTheRecordsOfAPeriod) {
  folder_.write("metrics.jsonl", records());
  const Facts facts = read();
  EXPECT_EQ(facts.job, "cnn on files");
  ASSERT_EQ(facts.periods.size(), 3U);  // without the first
  EXPECT_EQ(facts.steps(), 300);
  EXPECT_EQ(facts.window(), "steps 101 to 400");
  EXPECT_DOUBLE_EQ(facts.seconds(), 6);
  EXPECT_DOUBLE_EQ(*facts.share("fetch"), 0.5);
  EXPECT_DOUBLE_EQ(facts.periods[0].parts.at("fetch").cpu_seconds, 0.25);
  EXPECT_DOUBLE_EQ(facts.periods[0].parts.at("forward").cpu_seconds, -1);  // nobody measured it
  const core::SourceFigures& loader = *facts.periods[0].loader;
  EXPECT_EQ(loader.samples, 800);
  EXPECT_EQ(loader.threads, 2);
  const core::StageSums sums = core::sum_of(loader.stages);
  EXPECT_DOUBLE_EQ(sums.seconds, 4);
  EXPECT_DOUBLE_EQ(sums.cpu_seconds, 3.6);  // "decode" was not measured in detail, so all of it computes
  EXPECT_DOUBLE_EQ(sums.asleep_seconds, 0.4);
  EXPECT_DOUBLE_EQ(*facts.figure("process.cpu_cores"), (4.0 + 9 + 16) / 9);  // by time, without the first
  EXPECT_DOUBLE_EQ(*facts.figure("machine.cores"), 4);
  EXPECT_EQ(facts.word("plan.threads"), "2");
  ASSERT_EQ(facts.slow_steps.size(), 1U);
  EXPECT_EQ(facts.slow_steps[0].cause, "late");
  // At 110, 210, 250, 310 and 350; two kinds at each.
  EXPECT_DOUBLE_EQ(*facts.figure("checkpoints.count"), 5);
  ASSERT_TRUE(facts.figure("checkpoints.slower_after_seconds"));
  EXPECT_NEAR(*facts.figure("checkpoints.slower_after_seconds"), 0.03, 1e-9);
  EXPECT_THAT(facts.damage, IsEmpty());
  EXPECT_FALSE(facts.figure("cgroup.throttled_share"));
}

TEST_F(RunFacts, ALineThatIsBeingWrittenIsNoDamage) {
  folder_.write("metrics.jsonl", records() + R"({"event":"anatomy","step":500,"ste)");
  EXPECT_EQ(read().steps(), 300);
  EXPECT_THAT(read().damage, IsEmpty());
}

TEST_F(RunFacts, DamagedLinesAreCounted) {
  std::string deep(100'000, '[');
  folder_.write("metrics.jsonl", "\xFF\xFE\n[1,2]\nnull\n" + deep + "\n" + records() +
                                     R"({"event":"anatomy","step":"x","steps":1e300,"seconds":"nan","phases":7})"
                                     "\n");
  const Facts facts = read();
  EXPECT_EQ(facts.steps(), 300);
  EXPECT_THAT(facts.damage, ElementsAre(AllOf(HasSubstr("4 lines"), HasSubstr("line 1"))));
}

TEST_F(RunFacts, RecordsOfAnyTypeDoNoHarm) {
  for (const char* record : {R"({"event":"anatomy","step":1,"steps":1,"seconds":1,"phases":{"a":1}})",
                             R"({"event":"anatomy","step":1,"steps":1,"seconds":1,"phases":[1,null,{"seconds":"x"}]})",
                             R"({"event":"fed","step":1,"loader":[1],"threads":1e30,"loader_cpu":"x"})",
                             R"({"event":"fed","step":1,"loader":{"a":1,"b":"x"},"loader_cpu":[1]})",
                             R"({"event":"monitor","seconds":1,"figures":[1]})", R"({"event":7})",
                             R"({"event":"slow_step","step":9e99,"phase":[]})", R"({"event":"step","step":"x"})"}) {
    folder_.write("metrics.jsonl", std::string(record) + "\n" + record + "\n" + record + "\n");
    const Diagnosis diagnosis = examine(read());
    EXPECT_THAT(diagnosis.found, IsEmpty()) << record;
    EXPECT_THAT(diagnosis.verdict, HasSubstr("too few")) << record;
  }
}

TEST_F(RunFacts, NoRecordsAreTooFewSteps) {
  const Facts facts = read();
  EXPECT_THAT(facts.damage, ElementsAre(HasSubstr("metrics.jsonl: is missing")));
  EXPECT_THAT(examine(facts).verdict, HasSubstr("Only 0 steps"));
}

TEST_F(RunFacts, WhatIsNoRunIsRefused) {
  const TempFolder empty;
  EXPECT_THROW((void)run_facts(empty.path()), DataError);
  EXPECT_THROW((void)run_facts(empty / "missing"), DataError);
  folder_.write("plan.json", "{");
  EXPECT_THROW((void)read(), DataError);
  folder_.write("plan.json", R"({"plan":[1]})");
  EXPECT_THROW((void)read(), DataError);
}

}  // namespace
}  // namespace stoker::observe::doctor

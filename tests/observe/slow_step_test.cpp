// SPDX-License-Identifier: Apache-2.0
// The phase and the cause of a slow step.
#include "stoker/observe/anatomy/slow_step.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using core::index_of;
using core::Phase;

// A step that usually takes 10 ms and now 1 s more, in one phase.
StepFacts slow_in(Phase phase) {
  StepFacts facts{
      .step = 12, .seconds = 1.01, .usual_seconds = 0.01, .phases = {}, .usual = {}, .usage = {}, .source = {}};
  facts.usual[index_of(Phase::kForward)] = facts.phases[index_of(Phase::kForward)] = 0.004;
  facts.usual[index_of(Phase::kInput)] = facts.phases[index_of(Phase::kInput)] = 0.002;
  facts.phases[index_of(phase)] += 1;
  facts.usage.cpu_seconds = 1.01;
  return facts;
}

double figure(const core::SlowStep& slow, const std::string& name) {
  for (const core::Figure& each : slow.figures) {
    if (each.name == name) {
      return each.value;
    }
  }
  return -1;
}

TEST(SlowStep, NamesThePhaseAndWhatHappenedInIt) {
  const core::SlowStep saved = explain(slow_in(Phase::kCheckpoint));
  EXPECT_EQ(saved.step, 12);
  EXPECT_EQ(saved.phase, "checkpoint");
  EXPECT_EQ(saved.cause, "checkpoint");
  EXPECT_EQ(figure(saved, "phase_seconds"), 1);
  EXPECT_EQ(explain(slow_in(Phase::kEvaluation)).cause, "evaluation");
  EXPECT_EQ(explain(slow_in(Phase::kDeviceWait)).cause, "the device was still computing earlier steps");
}

TEST(SlowStep, ASlowSampleIsNamed) {
  StepFacts facts = slow_in(Phase::kInput);
  facts.source.stages = {{.name = "read", .seconds = 0.9}, {.name = "JPEG decode", .seconds = 0.3}};
  EXPECT_EQ(explain(facts).phase, "fetch");
  EXPECT_EQ(explain(facts).cause, "loading: read");
  facts.source.slowest = "cats/a.jpg";
  facts.source.slowest_seconds = 0.2;
  EXPECT_EQ(explain(facts).cause, "loading: read") << "the sample explains a fifth of the time";
  facts.source.slowest_seconds = 0.85;
  EXPECT_EQ(explain(facts).cause, "slow sample cats/a.jpg: 0.85 s");
  facts.source = {};
  facts.source.copy_seconds = 0.9;
  EXPECT_EQ(explain(facts).cause, "copy to the device");
}

TEST(SlowStep, LoadingIsPerThreadAndWithinTheStep) {
  StepFacts facts = slow_in(Phase::kInput);
  facts.source.threads = 4;
  facts.source.stages = {{.name = "JPEG decode", .seconds = 1.6}};
  EXPECT_EQ(explain(facts).cause, "") << "0.4 s of each thread";
  facts.source.stages[0].seconds = 3.6;
  EXPECT_EQ(explain(facts).cause, "loading: JPEG decode");
  facts.source_seconds = 1.51;
  EXPECT_EQ(explain(facts).cause, "") << "0.5 s of 0.9 s may have been before the step";
  facts.source_seconds = 1.31;
  EXPECT_EQ(explain(facts).cause, "loading: JPEG decode");
  facts.source.stages.clear();
  facts.source.copy_seconds = 0.9;
  EXPECT_EQ(explain(facts).cause, "copy to the device");
  facts.source_seconds = 1.5;
  EXPECT_EQ(explain(facts).cause, "");
}

TEST(SlowStep, AThreadThatNeverSleptWaitedForNoOther) {
  StepFacts facts = slow_in(Phase::kInput);
  facts.source.threads = 1;
  facts.source.stages = {{.name = "read", .seconds = 0.9}};
  facts.source.slowest = "a.png";
  facts.source.slowest_seconds = 0.9;
  facts.usage = {.cpu_seconds = 0.1, .involuntary = 2};
  EXPECT_EQ(explain(facts).cause, "the kernel gave the core to others, 2 times");
  facts.usage.voluntary = 1;
  EXPECT_EQ(explain(facts).cause, "slow sample a.png: 0.9 s");
}

TEST(SlowStep, TheKernelsFiguresAreTheCauseOnlyIfTheyExplainTheTime) {
  StepFacts facts = slow_in(Phase::kForward);
  facts.usage.involuntary = 9;
  EXPECT_EQ(explain(facts).cause, "") << "it computed all the time";
  EXPECT_EQ(figure(explain(facts), "involuntary_switches"), 9);
  facts.usage.cpu_seconds = 0.1;
  EXPECT_EQ(explain(facts).cause, "the kernel gave the core to others, 9 times");
  facts.usage.voluntary = 20;
  EXPECT_EQ(explain(facts).cause, "asleep for 0.91 s of it");
  facts.usage.major_faults = 3;
  EXPECT_EQ(explain(facts).cause, "memory read from disk: 3 page faults");
  facts = slow_in(Phase::kForward);
  facts.usage.minor_faults = 1000;
  EXPECT_EQ(explain(facts).cause, "") << "0.25 ms of 1 s";
  facts.usage.minor_faults = 2'500'000;
  EXPECT_EQ(explain(facts).cause, "memory new to the process: 2,500,000 page faults");
}

TEST(SlowStep, IsThreeTimesAsLongAndAMillisecond) {
  EXPECT_TRUE(is_slow(0.31, 0.1));
  EXPECT_FALSE(is_slow(0.29, 0.1));
  EXPECT_FALSE(is_slow(0.0009, 0.0001)) << "nobody looks for less than 1 ms";
}

}  // namespace
}  // namespace stoker::observe

// SPDX-License-Identifier: Apache-2.0
// The rules of memory that ran out, of a GPU's clock and of its link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/observe/doctor/examine.h"
#include "support/doctor_rules.h"
#include "support/healthy_script.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using ::testing::AllOf;
using testing::finding_of;
using ::testing::HasSubstr;
using testing::healthy_script;
using testing::set;

constexpr double kGiB = 1024.0 * 1024 * 1024;

// A batch of 64 rows did not fit into a GPU with 80 GiB.
Facts out_of_memory(const char* phase) {
  Facts facts;
  facts.source = Source::kScript;
  facts.words = {{"out_of_memory.what", "gpu"},
                 {"out_of_memory.phase", phase},
                 {"out_of_memory.where", "train.py:12"},
                 {"out_of_memory.text", "loss.backward()"}};
  set(facts, "out_of_memory.requested", 2 * kGiB);
  set(facts, "out_of_memory.allocated", 78 * kGiB);
  set(facts, "out_of_memory.reserved", 78.5 * kGiB);
  set(facts, "out_of_memory.free", 0.5 * kGiB);
  set(facts, "out_of_memory.total", 80 * kGiB);
  set(facts, "loader.batch", 64);
  return facts;
}

TEST(OomAdvice, IsTheVerdictThoughNoStepEnded) {
  const Diagnosis diagnosis = examine(out_of_memory("backward"));
  ASSERT_EQ(diagnosis.found.size(), 1u);
  EXPECT_THAT(diagnosis.verdict, AllOf(HasSubstr("The GPU's memory ran out at train.py:12 in backward"),
                                       HasSubstr("the training ended"), HasSubstr("32 rows instead of 64")));
  EXPECT_FALSE(finding_of(healthy_script(), "oom_advice"));
}

// 10 GiB stay, and 64 rows take 70 more: 56 rows fit into 0.9 of 80 GiB.
TEST(OomAdvice, ABatchFitsByWhatAStepTakes) {
  Facts facts = out_of_memory("forward");
  set(facts, "memory.total_bytes", 80 * kGiB);
  set(facts, "memory.rest_bytes", 10 * kGiB);
  set(facts, "memory.peak_bytes", 80 * kGiB);
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "batch_size=56");
  set(facts, "memory.peak_bytes", 30 * kGiB);  // the batches before were small: no reason to take a larger one
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "batch_size=32");
}

TEST(OomAdvice, OneRowCannotBecomeLess) {
  Facts facts = out_of_memory("forward");
  set(facts, "loader.batch", 1);
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("checkpoint the activations"));
}

TEST(OomAdvice, OtherProgramsHoldTheMemory) {
  Facts facts = out_of_memory("backward");
  set(facts, "out_of_memory.allocated", 66 * kGiB);
  set(facts, "out_of_memory.reserved", 67.5 * kGiB);
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, AllOf(HasSubstr("stoker ps"), HasSubstr("12.0 GiB")));
  set(facts, "out_of_memory.reserved", 75 * kGiB);  // 4.5 GiB elsewhere: CUDA's own
  set(facts, "out_of_memory.allocated", 74 * kGiB);
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("32 rows"));
}

TEST(OomAdvice, PiecesThatAreTooSmallAreToBeJoined) {
  Facts facts = out_of_memory("backward");
  set(facts, "out_of_memory.allocated", 76 * kGiB);
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  set(facts, "out_of_memory.allocated", 77 * kGiB);  // 1.5 GiB would not have been enough
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "batch_size=32");
}

TEST(OomAdvice, AnEvaluationWithGraphs) {
  Facts facts = out_of_memory("evaluation");
  facts.words["evaluation.gradients"] = "true";
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "torch.inference_mode()");
  facts.words["evaluation.gradients"] = "false";
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "batch_size=32");
  EXPECT_EQ(finding_of(out_of_memory("optimizer"), "oom_advice")->option, "fused=True");
}

TEST(OomAdvice, WorkersAndSharedMemory) {
  Facts facts = out_of_memory("fetch");
  facts.words["out_of_memory.what"] = "shared";
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("--shm-size"));
  facts.words["out_of_memory.what"] = "worker";
  EXPECT_THAT(finding_of(facts, "oom_advice")->claim, HasSubstr("Main memory ran out"));
  facts.words["out_of_memory.what"] = "host";
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("each sample when it is asked for"));
}

Facts hot() {
  Facts facts = healthy_script();
  set(facts, "gpu0.throttled_share", 0.15);
  set(facts, "gpu0.throttled.hardware_thermal_share", 0.15);
  set(facts, "gpu0.sm_clock_hz", 1.83e9);
  set(facts, "gpu0.sm_clock_limit_hz", 1.98e9);
  set(facts, "gpu0.busy_share", 1);
  return facts;
}

TEST(Throttle, HeatCostsTheClockThatIsMissing) {
  const auto finding = finding_of(hot(), "throttle");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, AllOf(HasSubstr("gpu0"), HasSubstr("too hot")));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.65 * (1 - 1.83 / 1.98)), 1e-3);
}

TEST(Throttle, IsSilentBelowItsThresholdsAndOfASetPowerCap) {
  Facts facts = hot();
  set(facts, "gpu0.throttled.hardware_thermal_share", 0.08);
  EXPECT_FALSE(finding_of(facts, "throttle"));
  facts = hot();
  set(facts, "gpu0.sm_clock_hz", 1.9e9);
  EXPECT_FALSE(finding_of(facts, "throttle"));
  facts = hot();
  facts.figures.erase("gpu0.throttled.hardware_thermal_share");
  set(facts, "gpu0.throttled.power_cap_share", 1);
  EXPECT_FALSE(finding_of(facts, "throttle"));
  EXPECT_TRUE(abstains(healthy_script(), "throttle"));
}

// Half of the lanes of a link of the fourth generation, which is in use a third of the time.
Facts narrow_link(double width) {
  Facts facts = healthy_script();
  set(facts, "gpu1.pcie_generation", 4);
  set(facts, "gpu1.pcie_generation_max", 4);
  set(facts, "gpu1.pcie_width", width);
  set(facts, "gpu1.pcie_width_max", 16);
  set(facts, "gpu1.pcie_received_bytes_per_second", 5.25e9);
  return facts;
}

TEST(LinkDegraded, HalfOfTheLanesMakeCopiesTwiceAsLong) {
  const auto finding = finding_of(narrow_link(8), "link_degraded");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, AllOf(HasSubstr("gpu1"), HasSubstr("50 %"), HasSubstr("33 % of the time")));
  EXPECT_NEAR(finding->gain.high, 1 / (1 - 0.95 / 6), 1e-2);
}

TEST(LinkDegraded, AnUnusedLinkGainsNothingAndAGoodOneIsHealthy) {
  Facts facts = narrow_link(8);
  set(facts, "gpu1.pcie_received_bytes_per_second", 0.1e9);
  EXPECT_LT(finding_of(facts, "link_degraded")->gain.speedup, 1 + kWorthSaying);
  EXPECT_FALSE(finding_of(narrow_link(13), "link_degraded"));
  EXPECT_TRUE(abstains(healthy_script(), "link_degraded"));
}

// The clock of the link is lower in a part of the windows: generations are a mean.
TEST(LinkDegraded, GenerationsCountByTheirRate) {
  Facts facts = narrow_link(16);
  set(facts, "gpu1.pcie_generation", 3.6);
  EXPECT_FALSE(finding_of(facts, "link_degraded"));
  set(facts, "gpu1.pcie_generation", 1);
  EXPECT_THAT(finding_of(facts, "link_degraded")->claim, HasSubstr("13 % of what it could"));
}

}  // namespace
}  // namespace stoker::observe::doctor

// SPDX-License-Identifier: Apache-2.0
// The rules of memory that ran out or is left unused, of a GPU's clock and of its link.
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

// A batch of the GPU would fit, but main memory ran out.
TEST(OomAdvice, OfMainMemoryTheGpusFiguresTellNothing) {
  Facts facts = out_of_memory("forward");
  facts.words["out_of_memory.what"] = "host";
  set(facts, "memory.total_bytes", 80 * kGiB);
  set(facts, "memory.rest_bytes", 10 * kGiB);
  set(facts, "memory.peak_bytes", 80 * kGiB);
  EXPECT_EQ(finding_of(facts, "oom_advice")->option, "batch_size=32");
  facts.words["out_of_memory.phase"] = "";  // a file is read as a whole, or a model is made
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("less at a time"));
}

TEST(OomAdvice, IsSaidBeforeOtherDangers) {
  Facts facts = healthy_script();
  for (const auto& [name, word] : out_of_memory("forward").words) {
    facts.words[name] = word;
  }
  set(facts, "graphs.more_per_step", 1);
  const Diagnosis diagnosis = examine(facts);
  ASSERT_EQ(diagnosis.found.size(), 2u);
  EXPECT_EQ(diagnosis.found[0].rule->id, "oom_advice");
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
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, AllOf(HasSubstr("stoker ps"), HasSubstr("11.1 GiB")));
  set(facts, "out_of_memory.reserved", 71 * kGiB);  // 8.5 GiB elsewhere, with CUDA's own
  set(facts, "out_of_memory.allocated", 70 * kGiB);
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
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("a smaller batch in the evaluation"));
  EXPECT_EQ(finding_of(out_of_memory("optimizer"), "oom_advice")->option, "fused=True");
}

TEST(OomAdvice, AnEvaluationThatKeepsItsOutputs) {
  Facts facts = out_of_memory("evaluation");
  facts.words["evaluation.gradients"] = "false";
  facts.words["kept_outputs.where"] = "train.py:40";
  set(facts, "kept_outputs.batches", 90);
  set(facts, "kept_outputs.gpu_bytes_per_batch", 0.1 * kGiB);
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, AllOf(HasSubstr("9.00 GiB"), HasSubstr("train.py:40")));
  set(facts, "kept_outputs.batches", 70);
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("a smaller batch in the evaluation"));
}

// 200 batches of an evaluation, each of which leaves one output.
Facts keeping(double gpu_bytes, double host_bytes) {
  Facts facts = healthy_script();
  facts.words["kept_outputs.name"] = "outputs";
  facts.words["kept_outputs.where"] = "train.py:40";
  set(facts, "kept_outputs.batches", 200);
  set(facts, "kept_outputs.tensors_per_batch", 1);
  set(facts, "kept_outputs.gpu_bytes_per_batch", gpu_bytes);
  set(facts, "kept_outputs.host_bytes_per_batch", host_bytes);
  set(facts, "memory.total_bytes", 80e9);
  set(facts, "machine.memory_bytes", 64e9);
  return facts;
}

TEST(PredictionsKept, AFifthOfTheMemoryIsALot) {
  const auto finding = finding_of(keeping(0.1e9, 0), "predictions_kept");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("in `outputs` at train.py:40: 25 % of the GPU's memory"));
  EXPECT_THAT(finding->cure, HasSubstr("eval_accumulation_steps"));
  EXPECT_FALSE(finding->danger.empty());
  EXPECT_FALSE(finding_of(keeping(0.07e9, 0), "predictions_kept"));
  EXPECT_FALSE(finding_of(healthy_script(), "predictions_kept"));
}

TEST(PredictionsKept, MainMemoryMayBeTheDataSets) {
  Facts facts = keeping(0, 0.07e9);
  EXPECT_THAT(finding_of(facts, "predictions_kept")->claim, HasSubstr("22 % of the memory"));
  facts.words["kept_outputs.name"] = "";
  EXPECT_FALSE(finding_of(facts, "predictions_kept"));
  facts = keeping(0, 0.04e9);
  EXPECT_FALSE(finding_of(facts, "predictions_kept"));
  set(facts, "cgroup.memory_limit_bytes", 32e9);
  EXPECT_TRUE(finding_of(facts, "predictions_kept"));
}

TEST(Fragmentation, OftenFullIsToldSometimesIsNot) {
  Facts facts = healthy_script();
  set(facts, "memory.retries_per_step", 0.15);
  set(facts, "memory.peak_bytes", 60e9);
  set(facts, "memory.total_bytes", 80e9);
  const auto finding = finding_of(facts, "fragmentation");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("fails 15 times in 100 steps"));
  EXPECT_THAT(finding->evidence[0], HasSubstr("60.0 of 80.0 GB"));
  set(facts, "memory.retries_per_step", 0.08);
  EXPECT_FALSE(finding_of(facts, "fragmentation"));
}

TEST(OomAdvice, WorkersAndSharedMemory) {
  Facts facts = out_of_memory("fetch");
  facts.words["out_of_memory.what"] = "shared";
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("--shm-size"));
  facts.words["out_of_memory.what"] = "worker";
  EXPECT_THAT(finding_of(facts, "oom_advice")->claim, HasSubstr("mostly since main memory ran out"));
  facts.words["out_of_memory.what"] = "host";
  EXPECT_THAT(finding_of(facts, "oom_advice")->cure, HasSubstr("each sample when it is asked for"));
}

Facts hot() {
  Facts facts = healthy_script();
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
  Facts facts = hot();
  set(facts, "gpu0.sm_clock_hz", 0.6e9);  // it is idle most of the time: heat is not the reason then
  EXPECT_NEAR(finding_of(facts, "throttle")->gain.high, 1 / (1 - 0.15), 1e-3);
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
  set(facts, "gpu1.pcie_sent_bytes_per_second", 0);
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
  facts.figures.erase("gpu1.pcie_sent_bytes_per_second");  // a GPU that does not count them
  EXPECT_TRUE(abstains(facts, "link_degraded"));
}

// The clock of the link is lower in a part of the windows: generations are a mean.
TEST(LinkDegraded, GenerationsCountByTheirRate) {
  Facts facts = narrow_link(16);
  set(facts, "gpu1.pcie_generation", 3.6);
  EXPECT_FALSE(finding_of(facts, "link_degraded"));
  set(facts, "gpu1.pcie_generation", 1);
  EXPECT_THAT(finding_of(facts, "link_degraded")->claim, HasSubstr("13 % of what it could"));
}

// A run that computes all segments again, in 2 of 24 GiB.
Facts recomputing(const char* device) {
  Facts facts;
  facts.words = {{"plan.recompute", "all"}, {"origin.plan.recompute", "command line"}, {"plan.device", device}};
  for (int i = 1; i <= 5; ++i) {
    facts.periods.push_back({.last_step = 20 * i,
                             .steps = 20,
                             .seconds = 1,
                             .parts = {{"forward", {0.25, -1}}, {"backward", {0.7, -1}}},
                             .loader = {}});
  }
  set(facts, "process.resident_bytes", 2 * kGiB);
  set(facts, "machine.available_bytes", 22 * kGiB);
  return facts;
}

TEST(RecomputeUnneeded, SpeaksWhereMemoryWouldHoldAll) {
  const auto finding = finding_of(recomputing("cpu"), "recompute_unneeded");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "recompute=none");
  EXPECT_THAT(finding->claim, HasSubstr("recompute=all"));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.25), 1e-6);  // a forward pass less
  Facts tight = recomputing("cpu");
  set(tight, "process.resident_bytes", 4 * kGiB);
  set(tight, "machine.available_bytes", 20 * kGiB);
  EXPECT_FALSE(finding_of(tight, "recompute_unneeded"));
  Facts limited = recomputing("cpu");  // the machine has more than the program may take
  set(limited, "cgroup.memory_limit_bytes", 8 * kGiB);
  EXPECT_FALSE(finding_of(limited, "recompute_unneeded"));
  Facts wanted = recomputing("cpu");
  wanted.words["plan.memory_limit"] = "2GiB";
  EXPECT_FALSE(finding_of(wanted, "recompute_unneeded"));
}

TEST(RecomputeUnneeded, KnowsWhatASearchChose) {
  Facts searched = recomputing("cpu"), cured = recomputing("cpu"), unknown = recomputing("cpu");
  searched.words["origin.plan.recompute"] = "measured";  // recompute=auto: a pass does not fit without
  EXPECT_FALSE(finding_of(searched, "recompute_unneeded"));
  cured.words["plan.recompute"] = "none";
  EXPECT_FALSE(finding_of(cured, "recompute_unneeded"));
  unknown.figures.clear();
  EXPECT_TRUE(abstains(unknown, "recompute_unneeded"));
}

// The memory of a GPU counts for what is on it; what a part of the segments costs is less certain.
TEST(RecomputeUnneeded, ReadsTheMemoryOfTheDevice) {
  Facts facts = recomputing("cuda:0");
  EXPECT_TRUE(abstains(facts, "recompute_unneeded"));
  set(facts, "gpu0.memory_used_bytes", 6 * kGiB);
  set(facts, "gpu0.memory_bytes", 80 * kGiB);
  const auto all = finding_of(facts, "recompute_unneeded");
  facts.words["plan.recompute"] = "every:2";
  const auto half = finding_of(facts, "recompute_unneeded");
  facts.words["plan.recompute"] = "layer1,attention";
  const auto some = finding_of(facts, "recompute_unneeded");
  ASSERT_TRUE(all && half && some);
  EXPECT_NEAR(half->gain.speedup, 1 / (1 - 0.125), 1e-6);
  EXPECT_EQ(some->gain.low, 1);  // perhaps nothing: only a trial tells
  set(facts, "gpu0.memory_used_bytes", 12 * kGiB);
  EXPECT_FALSE(finding_of(facts, "recompute_unneeded"));
}

}  // namespace
}  // namespace stoker::observe::doctor

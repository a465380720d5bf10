// SPDX-License-Identifier: Apache-2.0
// Each rule with a sick training, a cured one, and one that looks sick and is not. The sick ones lie within a factor of
// two of the threshold, so that a threshold moved by that much fails here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/inventory.h"
#include "support/doctor_rules.h"

namespace stoker::observe::doctor {
namespace {

using testing::abstains;
using ::testing::AllOf;
using testing::finding_of;
using ::testing::HasSubstr;
using ::testing::Not;

// A quiet machine with 8 cores, and 100 steps of 20 ms in five periods that only compute.
Facts healthy() {
  Facts facts;
  facts.job = "cnn";
  for (int i = 1; i <= 5; ++i) {
    core::SourceFigures loader;
    loader.samples = 640;
    loader.threads = 2;
    loader.cores = 8;
    loader.stages = {{.name = "read", .seconds = 0.05}, {.name = "JPEG decode", .seconds = 0.3}};
    facts.periods.push_back({.last_step = 20 * i,
                             .steps = 20,
                             .seconds = 0.4,
                             .parts = {{"fetch", {0.001, 0}}, {"forward", {0.2, 0.2}}, {"backward", {0.199, 0.199}}},
                             .loader = loader});
  }
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{{"machine.cores", 8},
                                                             {"machine.busy_cores", 1.2},
                                                             {"process.cpu_cores", 1.1},
                                                             {"threads.main.cpu_cores", 0.95},
                                                             {"threads.main.waiting_cores", 0.001},
                                                             {"threads.loader.cpu_cores", 0.1},
                                                             {"threads.loader.waiting_cores", 0.001},
                                                             {"cgroup.memory_pressure_share", 0}}) {
    facts.figures[name] = {value, "monitor"};
  }
  facts.words = {{"plan.threads", "2"}, {"plan.intra_op", "1"}, {"plan.log", "none"}};
  return facts;
}

// That share of each period goes to a part, at the cost of forward.
void spend(Facts& facts, const std::string& part, double share, double computing = 0) {
  for (Period& period : facts.periods) {
    period.parts[part] = {share * period.seconds, computing * share * period.seconds};
    period.parts["forward"].seconds = 0.4 - period.parts["backward"].seconds - share * period.seconds;
  }
}

void set(Facts& facts, const char* figure, double value) { facts.figures[figure] = {value, "monitor"}; }

TEST(Rules, AreSilentAboutAHealthyTraining) {
  const Diagnosis diagnosis = examine(healthy());
  EXPECT_THAT(diagnosis.found, ::testing::IsEmpty());
  for (const Undecided& each : diagnosis.undecided) {
    const bool of_gpu = each.rule->id == "throttle" || each.rule->id == "link_degraded";  // it has none
    EXPECT_TRUE(of_gpu || each.rule->level == Level::kTrace) << each.rule->id;
  }
  EXPECT_THAT(diagnosis.verdict, HasSubstr("Healthy"));
}

TEST(Rules, AbstainWithoutTheirSignal) {
  Facts facts = healthy();
  facts.figures.clear();
  for (const char* rule : {"neighbour", "oversubscribed_threads", "cpu_quota", "mem_pressure"}) {
    EXPECT_TRUE(abstains(facts, rule)) << rule;
  }
  for (Period& period : facts.periods) {
    period.loader.reset();
  }
  spend(facts, "fetch", 0.3);
  EXPECT_TRUE(abstains(facts, "input_wait"));
  facts.periods.clear();
  for (const char* rule : {"input_wait", "checkpoint_stall", "tracker_cost", "spikes"}) {
    EXPECT_TRUE(abstains(facts, rule)) << rule;
  }
}

TEST(Rules, SayWhatWouldProveThemWrong) {
  for (const Rule& rule : rules()) {
    for (const std::string_view words : {rule.signal, rule.threshold, rule.source, rule.disproof}) {
      EXPECT_GT(words.size(), 10U) << rule.id;
    }
  }
}

// Two threads at 4.7 ms per sample each, all the time; the step could take twice the samples.
Facts starved(double share) {
  Facts facts = healthy();
  spend(facts, "fetch", share);
  for (Period& period : facts.periods) {
    period.loader->stages = {{.name = "read", .seconds = 0.1}, {.name = "JPEG decode", .seconds = 0.7}};
  }
  set(facts, "process.cpu_cores", 2.6);
  set(facts, "machine.busy_cores", 2.7);
  return facts;
}

TEST(InputWait, NamesTheStageAndTheThreadsThatWouldKeepUp) {
  const auto finding = finding_of(starved(0.5), "input_wait");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, AllOf(HasSubstr("50 %"), HasSubstr("JPEG decode on 2 loader threads")));
  EXPECT_EQ(finding->option, "threads=4");
  EXPECT_NEAR(finding->gain.high, 1 / (1 - 1.1 * 0.5), 1e-9);  // all of the waiting, and a little more
  EXPECT_GT(finding->gain.low, 1.4);
}

TEST(InputWait, HasItsThreshold) {
  EXPECT_TRUE(finding_of(starved(0.08), "input_wait"));
  EXPECT_FALSE(finding_of(starved(0.03), "input_wait"));
  EXPECT_FALSE(finding_of(healthy(), "input_wait"));
}

// Without a free core, another thread only takes the training's own.
TEST(InputWait, PromisesNoThreadsWithoutCores) {
  Facts facts = starved(0.5);
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 1.97);
  set(facts, "machine.busy_cores", 2);
  const auto finding = finding_of(facts, "input_wait");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "");
  EXPECT_LT(finding->gain.low, 1.15);
}

// 0.9 of a core free is enough for another thread, 0.8 is not.
TEST(InputWait, CountsACoreThatIsNearlyFree) {
  for (const auto& [busy, option] : {std::pair(2.1, "threads=3"), {2.2, ""}}) {
    Facts facts = starved(0.5);
    set(facts, "machine.cores", 3);
    set(facts, "process.cpu_cores", busy);
    set(facts, "machine.busy_cores", busy);
    const auto finding = finding_of(facts, "input_wait");
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->option, option) << busy;
  }
}

// It waits, but for an evaluation that takes longer: data is there when it is wanted.
TEST(InputWait, IsNotBlamedForALongerPause) {
  Facts facts = starved(0.08);
  spend(facts, "evaluation", 0.3);
  EXPECT_FALSE(finding_of(facts, "input_wait"));
}

TEST(CheckpointStall, HasItsThreshold) {
  Facts sick = healthy(), small = healthy();
  spend(sick, "checkpoint", 0.03);
  spend(small, "checkpoint", 0.013);
  set(sick, "checkpoints.count", 10);
  const auto finding = finding_of(sick, "checkpoint_stall");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "save_every=30");  // every 10 steps at 3 %; 1 % at every 30
  EXPECT_NEAR(finding->gain.high, 1 / (1 - 1.1 * 0.02), 1e-9);
  EXPECT_FALSE(finding_of(small, "checkpoint_stall"));
  EXPECT_FALSE(finding_of(healthy(), "checkpoint_stall"));
}

TEST(TrackerCost, HasItsThreshold) {
  Facts sick = healthy(), small = healthy();
  spend(sick, "logging", 0.03, 1);
  spend(small, "logging", 0.013, 1);
  EXPECT_TRUE(finding_of(sick, "tracker_cost"));
  EXPECT_FALSE(finding_of(small, "tracker_cost"));
  EXPECT_FALSE(finding_of(healthy(), "tracker_cost"));
}

// The log is short, but the thread gets no core for it.
TEST(TrackerCost, IsNotBlamedForWaitingForACore) {
  Facts facts = healthy();
  spend(facts, "logging", 0.03, 0);
  set(facts, "threads.main.waiting_cores", 0.9);
  EXPECT_FALSE(finding_of(facts, "tracker_cost"));
}

// What remains without stacks follows from the backward pass: three networks of which both sides were measured.
TEST(DebugApis, ARunSaysSoInItsPlan) {
  Facts facts = healthy();
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  facts.words["plan.anomaly"] = "on";
  const auto gain = [&](double forward, double loss, double backward, double other) {
    for (Period& each : facts.periods) {
      each.seconds = 0.02 * (forward + loss + backward + other);  // 20 steps, of so many ms
      each.parts = {
          {"forward", {0.02 * forward, -1}}, {"loss", {0.02 * loss, -1}}, {"backward", {0.02 * backward, -1}}};
    }
    const auto finding = finding_of(facts, "debug_apis_on");
    EXPECT_EQ(finding.value().option, "anomaly=off");
    return finding.value().gain;
  };
  const Prediction mlp = gain(52.5, 10.1, 4.13, 0.64);
  EXPECT_NEAR(mlp.speedup, 16.1, 2.5);
  EXPECT_LT(mlp.low, 16.1);
  EXPECT_GT(mlp.high, 16.1);
  EXPECT_NEAR(gain(250, 32.9, 62, 0.6).speedup, 4.5, 0.9);
  const Prediction gpt = gain(525.5, 13.9, 82.2, 1);
  EXPECT_NEAR(gpt.speedup, 7.6, 0.5);  // what remains is known to a quarter
  EXPECT_NEAR(gpt.low / gpt.speedup, 1 / 1.25, 0.03);
  EXPECT_NEAR(gpt.high / gpt.speedup, 1 / 0.75, 0.08);
  EXPECT_LT(gain(52, 0.1, 100, 1).speedup, 1.02) << "a few large operators: their stacks cost nothing";
  for (const auto& [name, value] :
       {std::pair("plan.recompute", "all"), {"plan.optimizer_in_backward", "on"}, {"plan.device", "cuda:0"}}) {
    facts.words[name] = value;
    EXPECT_GT(gain(525.5, 13.9, 607, 1).speedup, 5) << "the backward pass holds more than itself: " << name;
    facts.words.erase(name);
  }
  facts.words["plan.recompute"] = "none";
  EXPECT_NEAR(gain(525.5, 13.9, 82.2, 1).speedup, 7.6, 0.5);
}

Facts with_waiting(double waiting, double elsewhere) {
  Facts facts = healthy();
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 1.9 - elsewhere);
  set(facts, "machine.busy_cores", 1.9);
  set(facts, "threads.main.waiting_cores", waiting);
  set(facts, "threads.loader.cpu_cores", 0.9);
  set(facts, "threads.loader.waiting_cores", 0.5);
  return facts;
}

TEST(Neighbour, HasItsThresholds) {
  const auto finding = finding_of(with_waiting(0.08, 0.8), "neighbour");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.08), 1e-9);
  EXPECT_FALSE(finding_of(with_waiting(0.03, 0.8), "neighbour"));
  EXPECT_FALSE(finding_of(with_waiting(0.08, 0.3), "neighbour"));
}

// Two threads of an operator wait for each other: each without a core half of the time, both have one for a tenth.
TEST(Neighbour, HoldsAllThreadsOfAnOperatorUp) {
  Facts facts = with_waiting(0.5, 0.8);
  facts.words["plan.intra_op"] = "2";
  set(facts, "threads.unnamed.waiting_cores", 0.5);
  const auto finding = finding_of(facts, "neighbour");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 10, 1e-9);
  EXPECT_THAT(finding->cure, HasSubstr("one thread (intra_op=1"));
  facts.source = Source::kScript;
  facts.words.erase("plan.intra_op");
  EXPECT_NEAR(finding_of(facts, "neighbour")->gain.speedup, 2, 1e-9);
  set(facts, "switch.threads", 2);
  EXPECT_NEAR(finding_of(facts, "neighbour")->gain.speedup, 10, 1e-9);
  EXPECT_THAT(finding_of(facts, "neighbour")->cure, HasSubstr("one thread (torch.set_num_threads(1))"));
  const auto tried = [&] { return std::ranges::count(inventory(facts), "torch.set_num_threads(1)", &Switch::option); };
  EXPECT_EQ(tried(), 1);
  set(facts, "switch.threads", 1);
  EXPECT_EQ(tried(), 0);
}

// Without waiting threads there are none that take turns.
TEST(Neighbour, AHelperThatWaitsForNothingCostsNothing) {
  Facts facts = with_waiting(0.08, 0.8);
  facts.words["plan.intra_op"] = "2";
  set(facts, "threads.unnamed.waiting_cores", 0.001);
  EXPECT_NEAR(finding_of(facts, "neighbour")->gain.speedup, 1 / (1 - 0.08), 0.005);
}

TEST(Neighbour, PromisesNoMoreThanTwentyTimes) {
  const auto finding = finding_of(with_waiting(0.99, 0.8), "neighbour");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->gain.speedup, 20, 1e-6);
}

TEST(CheckpointStall, CountsTheSlowerStepAfterIt) {
  Facts facts = healthy();
  spend(facts, "checkpoint", 0.25);
  set(facts, "checkpoints.count", 20);
  const auto without = finding_of(facts, "checkpoint_stall");
  set(facts, "checkpoints.slower_after_seconds", 0.005);
  const auto with = finding_of(facts, "checkpoint_stall");
  ASSERT_TRUE(without && with);
  // 2 s in all: 0.5 s of checkpoints and 0.1 s after them; 4 % of these stay.
  EXPECT_NEAR(without->gain.low, 2 / (2 - 0.95 * 0.96 * 0.5), 1e-9);
  EXPECT_NEAR(with->gain.low, 2 / (2 - 0.95 * 0.96 * 0.6), 1e-9);
}

TEST(OversubscribedThreads, HasItsThresholds) {
  const auto waiting = [](double share, double elsewhere) {
    Facts facts = with_waiting(share, elsewhere);
    facts.words["plan.intra_op"] = "2";
    return facts;
  };
  const auto finding = finding_of(waiting(0.08, 0.3), "oversubscribed_threads");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->option, HasSubstr("threads=auto"));
  EXPECT_FALSE(finding_of(waiting(0.03, 0.3), "oversubscribed_threads"));
  EXPECT_FALSE(finding_of(waiting(0.08, 0.8), "oversubscribed_threads"));       // the neighbour's doing
  EXPECT_FALSE(finding_of(with_waiting(0.08, 0.3), "oversubscribed_threads"));  // loading takes the cores
  Facts few = waiting(0.08, 0.3);
  set(few, "machine.cores", 8);  // more cores than threads that are ready: nobody takes one
  EXPECT_FALSE(finding_of(few, "oversubscribed_threads"));
}

TEST(CpuQuota, HasItsThreshold) {
  Facts sick = healthy(), small = healthy();
  for (Facts* facts : {&sick, &small}) {
    facts->words["plan.intra_op"] = "4";
    set(*facts, "cgroup.cpu_limit_cores", 2);
    set(*facts, "cgroup.throttled_cores", 1.1);
  }
  set(sick, "cgroup.throttled_share", 0.08);
  set(small, "cgroup.throttled_share", 0.03);
  const auto finding = finding_of(sick, "cpu_quota");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->option, HasSubstr("intra_op=2"));
  EXPECT_LE(finding->gain.high, 1 / (1 - 0.08) + 1e-9);  // at most the time in which it was stopped
  EXPECT_FALSE(finding_of(small, "cpu_quota"));
}

// The kernel's stops count as waiting for a core: one cause, told once.
TEST(CpuQuota, TakesThePlaceOfTooManyThreads) {
  Facts facts = with_waiting(0.4, 0.3);
  facts.words["plan.intra_op"] = "2";
  set(facts, "cgroup.cpu_limit_cores", 1);
  set(facts, "cgroup.throttled_cores", 0.9);
  set(facts, "cgroup.throttled_share", 0.03);
  EXPECT_TRUE(finding_of(facts, "oversubscribed_threads"));
  EXPECT_FALSE(finding_of(facts, "cpu_quota"));
  set(facts, "cgroup.throttled_share", 0.08);
  EXPECT_FALSE(finding_of(facts, "oversubscribed_threads"));
  const auto finding = finding_of(facts, "cpu_quota");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "threads=auto intra_op=1");
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.65 * 0.4), 1e-9);
  for (const double limit : {1.0, 0.5}) {  // fewer threads than one there are not
    facts.words["plan.intra_op"] = "1";
    set(facts, "cgroup.cpu_limit_cores", limit);
    EXPECT_EQ(finding_of(facts, "cpu_quota")->option, "") << limit;
    EXPECT_LT(finding_of(facts, "cpu_quota")->gain.low, finding->gain.low) << limit;
  }
}

TEST(CpuQuota, TakesThePlaceOfANeighbour) {
  Facts facts = with_waiting(0.4, 0.8);
  EXPECT_TRUE(finding_of(facts, "neighbour"));
  set(facts, "cgroup.throttled_share", 0.08);
  EXPECT_FALSE(finding_of(facts, "neighbour"));
}

TEST(MemPressure, HasItsThreshold) {
  Facts sick = healthy(), small = healthy();
  set(sick, "cgroup.memory_pressure_share", 0.03);
  set(small, "cgroup.memory_pressure_share", 0.013);
  EXPECT_TRUE(finding_of(sick, "mem_pressure"));
  EXPECT_FALSE(finding_of(small, "mem_pressure"));
}

TEST(Spikes, HaveTheirThresholdAndTheWorstCause) {
  Facts sick = healthy(), small = healthy(), pause = healthy();
  sick.slow_steps = {
      {.step = 5, .seconds = 0.05, .usual_seconds = 0.02, .part = "fetch", .cause = "slow sample a.jpg"},
      {.step = 9, .seconds = 0.06, .usual_seconds = 0.02, .part = "fetch", .cause = "slow sample b.jpg"}};
  small.slow_steps = {sick.slow_steps[0]};
  pause.slow_steps = {{.step = 5, .seconds = 1, .usual_seconds = 0.02, .part = "checkpoint", .cause = "checkpoint"}};
  const auto finding = finding_of(sick, "spikes");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, AllOf(HasSubstr("2 slow steps cost"), HasSubstr("b.jpg"), Not(HasSubstr("a.jpg"))));
  EXPECT_FALSE(finding_of(small, "spikes"));
  EXPECT_FALSE(finding_of(pause, "spikes"));
}

// Of two causes, the one whose cure gains more comes first.
TEST(Examine, OrdersByGain) {
  Facts facts = starved(0.4);
  spend(facts, "checkpoint", 0.1);
  facts.periods[0].parts["fetch"].seconds = 0.4 * 0.4;
  const Diagnosis diagnosis = examine(facts);
  ASSERT_EQ(diagnosis.found.size(), 2U);
  EXPECT_EQ(diagnosis.found[0].rule->id, "input_wait");
  EXPECT_EQ(diagnosis.found[1].rule->id, "checkpoint_stall");
  EXPECT_GE(diagnosis.found[0].finding.gain.speedup, diagnosis.found[1].finding.gain.speedup);
  EXPECT_THAT(diagnosis.verdict, AllOf(HasSubstr("waits for data 40 %"), HasSubstr("threads=")));
}

TEST(Examine, SaysThatThereAreTooFewSteps) {
  Facts facts = starved(0.9);
  facts.periods.resize(1);
  facts.periods[0].steps = 5;
  const Diagnosis diagnosis = examine(facts);
  EXPECT_TRUE(diagnosis.found.empty());
  EXPECT_THAT(diagnosis.verdict, HasSubstr("Only 5 steps"));
}

}  // namespace
}  // namespace stoker::observe::doctor

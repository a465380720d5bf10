// SPDX-License-Identifier: Apache-2.0
// Rules of a Python script's loader: each with a sick training, a cured one, and one that looks sick and is
// not. The sick ones lie within a factor of two of the threshold, so that a threshold moved by that much fails here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/doctor_rules.h"
#include "support/healthy_script.h"

namespace stoker::observe::doctor {
namespace {

using ::testing::AllOf;
using testing::finding_of;
using ::testing::HasSubstr;
using testing::healthy_script;
using testing::load;
using testing::set;
using testing::spend;

// 0.36 s of work in 0.4 s on the training thread: 40 ms per step become 4 + 36 / workers.
TEST(ScriptInput, WithoutWorkersTheyAreTheCure) {
  Facts facts = healthy_script();
  load(facts, 0, 0.33, 0.03);
  spend(facts, "fetch", 0.9);
  set(facts, "process.cpu_cores", 1);
  set(facts, "machine.busy_cores", 1);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, AllOf(HasSubstr("90 % of the time"), HasSubstr("num_workers=0")));
  EXPECT_THAT(found->option, ::testing::Eq("num_workers=6"));
  EXPECT_THAT(found->evidence, ::testing::Contains(HasSubstr("train.py:14")));
  EXPECT_NEAR(found->gain.speedup, 6, 2);  // the cores are busy for 0.4 s of 8
}

// Half of that work is the garbage collector's, which visits what the loader makes.
TEST(ScriptInput, CollectionsWhileLoadingAreLoading) {
  Facts facts = healthy_script();
  load(facts, 0, 0.01, 0.35);
  spend(facts, "fetch", 0.45);
  spend(facts, "loader_gc", 0.45);
  set(facts, "process.cpu_cores", 1);
  set(facts, "machine.busy_cores", 1);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("90 % of the time"));
  EXPECT_GT(found->gain.speedup, 4);
  EXPECT_FALSE(finding_of(facts, "gc_churn"));
}

// On many cores the hand-over of a batch remains, 1 ms of each step: 10 of 40 ms per period.
TEST(ScriptInput, TheHandOverOfBatchesRemains) {
  Facts facts = healthy_script();
  load(facts, 0, 0.33, 0.03);
  spend(facts, "fetch", 0.9);
  set(facts, "machine.cores", 64);
  set(facts, "process.cpu_cores", 1);
  set(facts, "machine.busy_cores", 1);
  EXPECT_NEAR(finding_of(facts, "input_wait")->gain.speedup, 0.4 / (0.4 - 0.975 * 0.35), 0.5);
}

TEST(ScriptInput, WorkersThatWaitAreNotTheLimit) {
  Facts facts = healthy_script();
  spend(facts, "fetch", 0.3, 0.1);
  load(facts, 4, 1.0, 0.05);  // at work 66 % of the time
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  load(facts, 4, 1.35, 0.05);
  EXPECT_TRUE(finding_of(facts, "input_wait"));
}

TEST(ScriptInput, WhatIdleWorkersDoIsNoCause) {
  Facts facts = healthy_script();
  spend(facts, "fetch", 0.3, 0.1);
  load(facts, 4, 0.05, 0.55);  // at work 38 % of the time, in collate
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  load(facts, 4, 0.05, 0.95);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, HasSubstr("collate makes the batch"));
}

TEST(ScriptInput, ShortWaitsAreHandOver) {
  Facts facts = healthy_script();
  load(facts, 4, 1.5, 0.1);
  spend(facts, "fetch", 0.03, 0.1);
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  spend(facts, "fetch", 0.08, 0.1);
  EXPECT_TRUE(finding_of(facts, "input_wait"));
  load(facts, 4, 0.5, 0.1);  // the workers wait, too
  EXPECT_FALSE(finding_of(facts, "input_wait"));
}

TEST(ScriptInput, WorkersBeyondTheCoresAreNoCure) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 2);
  set(facts, "machine.busy_cores", 2);
  set(facts, "switch.threads", 1);
  load(facts, 2, 0.7, 0.02);
  spend(facts, "fetch", 0.12);
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  spend(facts, "fetch", 0.3);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "");
}

// One core, which loading keeps busy: a worker would gain nothing, and the waiting is said all the same.
TEST(ScriptInput, OnOneCoreLessWorkIsTheCure) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 1);
  set(facts, "process.cpu_cores", 0.999);
  set(facts, "machine.busy_cores", 1);
  set(facts, "switch.threads", 1);
  load(facts, 0, 0.37, 0.01);
  spend(facts, "fetch", 0.95);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "");
  EXPECT_GT(found->gain.gain(), 0.1);
}

TEST(ScriptInput, ThreadsOfOperatorsMakeRoomForWorkers) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 1.1);
  set(facts, "machine.busy_cores", 1.1);
  set(facts, "switch.threads", 2);
  load(facts, 0, 0.33, 0.01);
  spend(facts, "fetch", 0.85);
  const auto idle = finding_of(facts, "input_wait");
  ASSERT_TRUE(idle);
  EXPECT_THAT(idle->option, HasSubstr("torch.set_num_threads(1)"));
  // A thread that helps for a part of the step: half of its time is work, which one thread must do, too.
  load(facts, 0, 0.12, 0.01);
  spend(facts, "fetch", 0.3);
  set(facts, "threads.unnamed.cpu_cores", 0.0);
  const double alone = finding_of(facts, "input_wait")->gain.speedup;
  set(facts, "threads.unnamed.cpu_cores", 0.2);
  const Prediction helped = finding_of(facts, "input_wait")->gain;
  EXPECT_NEAR(alone, 1.37, 0.02);
  EXPECT_NEAR(helped.speedup, 1.21, 0.02);
  EXPECT_NEAR(helped.low, 1.104, 0.015);   // four fifths of it are work
  EXPECT_NEAR(helped.high, 1.377, 0.015);  // a fifth is
}

TEST(ScriptInput, WorkersThatSleepMayBeMoreThanCores) {
  Facts facts = healthy_script();
  load(facts, 4, 1.55, 0.03, 0.95);
  set(facts, "process.cpu_cores", 0.9);
  set(facts, "machine.busy_cores", 0.9);
  spend(facts, "fetch", 0.8, 0.02);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("reading"));
  EXPECT_THAT(found->option, HasSubstr("num_workers=18"));
  EXPECT_GT(found->gain.speedup, 3);
}

TEST(ScriptInput, NamesTheLibraryThatTakesTheTime) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 1);
  load(facts, 0, 0.3, 0.02);
  spend(facts, "fetch", 0.8);
  facts.calls = {{"loader", "pandas", "__getitem__ (data.py:31)", 0.6},
                 {"loader", "torch", "__getitem__ (data.py:31)", 0.3},
                 {"loader", "torch", "", 1},  // torch's own fetch, in which all of this happens
                 {"step", "pandas", "", 0.9}};
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("row access by pandas in __getitem__ (data.py:31)"));
  facts.calls[0].share = 0.3;  // no longer what to cure first
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("row access")));
}

// Four workers share the core to which the training thread was bound.
TEST(ScriptInput, BoundWorkersAreNamed) {
  Facts facts = healthy_script();
  load(facts, 4, 1.6, 0);
  for (Period& period : facts.periods) {
    period.loader->stages[0].probed_cpu_seconds = 0.8;  // the other half they wait for one of the two
  }
  spend(facts, "fetch", 0.6, 0);
  set(facts, "process.cpu_cores", 1.4);
  set(facts, "machine.busy_cores", 1.4);
  set(facts, "process.start_cores", 8);
  set(facts, "loader.cores", 2);
  const auto finding = finding_of(facts, "input_wait");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("its 4 workers may use 2 of the 8 cores that the program started with"));
  EXPECT_THAT(finding->cure, HasSubstr("sched_setaffinity"));
  EXPECT_EQ(finding->option, "");  // nothing that a patch could write: which cores, the script must say
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.6 * 0.5), 0.05);  // 0.2 s of work for each worker, on its own core
  set(facts, "loader.cores", 3);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("may use")));
  set(facts, "loader.cores", 2);
  set(facts, "process.start_cores", 3);  // of a container, or of taskset
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("may use")));
}

TEST(ScriptInput, NamesFilesThatAreReadForLittle) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 1);  // no worker would help
  set(facts, "process.cpu_cores", 0.999);
  set(facts, "machine.busy_cores", 1);
  load(facts, 0, 0.5, 0.02);
  spend(facts, "fetch", 0.5);
  set(facts, "loader.batch", 64);
  set(facts, "loader.bytes_per_batch", 64 * 18e3);
  set(facts, "loader.read_bytes_per_sample", 180e3);
  const auto finding = finding_of(facts, "input_wait");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->claim, HasSubstr("each sample reads 176 KiB of files to give 17.6 KiB"));
  EXPECT_GT(finding->gain.speedup, 1.4);
  set(facts, "loader.bytes_per_batch", 64 * 30e3);  // six times
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("of files")));
  set(facts, "loader.bytes_per_batch", 64 * 2e3);
  set(facts, "loader.read_bytes_per_sample", 80e3);  // 40 times, of little
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("of files")));
}

TEST(ScriptInput, CollateAndManyTensorsHaveNames) {
  Facts facts = healthy_script();
  set(facts, "machine.cores", 1);
  load(facts, 0, 0.1, 0.25);
  spend(facts, "fetch", 0.8);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, HasSubstr("collate makes the batch"));
  load(facts, 0, 0.25, 0.2);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("collate")));
  Facts pieces = healthy_script();
  spend(pieces, "fetch", 0.5, 0.9);  // the training thread computes while it fetches: it unpacks
  set(pieces, "loader.tensors_per_batch", 90);
  EXPECT_THAT(finding_of(pieces, "input_wait")->claim, HasSubstr("90 tensors per batch"));
  spend(pieces, "fetch", 0.5, 0.4);  // most of the time it waits for them
  EXPECT_FALSE(finding_of(pieces, "input_wait"));
  spend(pieces, "fetch", 0.5, 0.9);
  set(pieces, "loader.tensors_per_batch", 40);
  EXPECT_FALSE(finding_of(pieces, "input_wait")) << "no cause that would be known";
}

TEST(EpochRestart, SpeaksOfWorkersThatStartAnew) {
  Facts facts = healthy_script();
  set(facts, "loader.persistent", 0);
  set(facts, "loader.starts", 5);
  spend(facts, "loader_start", 0.03);
  const auto found = finding_of(facts, "epoch_restart");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "persistent_workers=True");
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.2 * 0.03), 0.005);
  set(facts, "loader.seconds_per_start", 0.02);
  set(facts, "loader.longer_first_step", 0.05);
  EXPECT_NEAR(finding_of(facts, "epoch_restart")->gain.speedup, 1 / (1 - 1.2 * 0.03 * 3.5), 0.005);
  spend(facts, "loader_start", 0.012);  // long epochs
  EXPECT_FALSE(finding_of(facts, "epoch_restart"));
  spend(facts, "loader_start", 0.3);
  set(facts, "loader.persistent", 1);  // the only start, late
  EXPECT_FALSE(finding_of(facts, "epoch_restart"));
}

}  // namespace
}  // namespace stoker::observe::doctor

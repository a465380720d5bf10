// SPDX-License-Identifier: Apache-2.0
// Rules that read a Python script's records: each with a sick training, a cured one, and one that looks sick and is
// not. The sick ones lie within a factor of two of the threshold, so that a threshold moved by that much fails here.
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

// A quiet machine with 8 cores: 100 steps of 40 ms in ten periods, with four workers that keep up.
Facts healthy() {
  Facts facts;
  facts.source = Source::kScript;
  facts.job = "train.py, torch 2.11.0";
  for (int i = 1; i <= 10; ++i) {
    core::SourceFigures loader;
    loader.samples = 320;
    loader.threads = 4;
    loader.stages = {{.name = "samples", .seconds = 0.8, .probed_seconds = 0.8, .probed_cpu_seconds = 0.8},
                     {.name = "collate", .seconds = 0.1, .probed_seconds = 0.1, .probed_cpu_seconds = 0.1}};
    facts.periods.push_back({.last_step = 10 * i,
                             .steps = 10,
                             .seconds = 0.4,
                             .parts = {{"fetch", {0.002, 0.001}},
                                       {"backward", {0.2, 0.2}},
                                       {"optimizer", {0.01, 0.01}},
                                       {"other", {0.188, 0.188}}},
                             .loader = loader});
  }
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, double>>{{"machine.cores", 8},
                                                             {"machine.busy_cores", 3.3},
                                                             {"process.cpu_cores", 3.2},
                                                             {"threads.main.cpu_cores", 0.95},
                                                             {"threads.main.waiting_cores", 0.001},
                                                             {"threads.unnamed.cpu_cores", 0.5},
                                                             {"threads.workers.cpu_cores", 2.2},
                                                             {"loader.workers", 4},
                                                             {"loader.persistent", 1},
                                                             {"loader.threads_per_worker", 1},
                                                             {"loader.copied_bytes_per_second", 5e4},
                                                             {"loader.private_bytes", 3e7},
                                                             {"loader.tensors_per_batch", 2},
                                                             {"switch.threads", 4},
                                                             {"switch.optimizer.tensors", 60},
                                                             {"graphs.deeper_per_step", 0},
                                                             {"graphs.more_per_step", 0}}) {
    facts.figures[name] = {value, "script"};
  }
  facts.words = {{"switch.anomaly", "false"},        {"switch.profiler", "false"},
                 {"switch.optimizer.name", "AdamW"}, {"switch.optimizer.fused", "true"},
                 {"evaluation.gradients", "false"},  {"loader.where", "train.py:14"},
                 {"loader.start_method", "fork"},    {"loader.dataset", "Pictures"}};
  return facts;
}

// That share of each period goes to a part, at the cost of other.
void spend(Facts& facts, const std::string& part, double share, double computing = 1) {
  for (Period& period : facts.periods) {
    const double seconds = share * period.seconds;
    period.parts["other"].seconds -= seconds - period.part(part);
    period.parts[part] = {seconds, computing * seconds};
  }
}

void set(Facts& facts, const char* figure, double value) { facts.figures[figure] = {value, "script"}; }

// All periods load with that many workers, which spend so many seconds of a period on samples and on collate.
void load(Facts& facts, int workers, double samples, double collate, double asleep = 0) {
  set(facts, "loader.workers", workers);
  for (Period& period : facts.periods) {
    period.loader->threads = workers;
    period.loader->stages = {
        {.name = "samples",
         .seconds = samples,
         .probed_seconds = samples,
         .probed_cpu_seconds = samples * (1 - asleep),
         .probed_asleep_seconds = samples * asleep},
        {.name = "collate", .seconds = collate, .probed_seconds = collate, .probed_cpu_seconds = collate}};
  }
}

TEST(ScriptRules, AHealthyScriptGetsNoAdvice) {
  const Diagnosis diagnosis = examine(healthy());
  EXPECT_THAT(diagnosis.found, IsEmpty());
  EXPECT_THAT(diagnosis.verdict, HasSubstr("Healthy"));
}

TEST(ScriptRules, NothingOfAScriptIsAFaultOfARun) {
  Facts facts = healthy();
  facts.source = Source::kRun;
  spend(facts, "gc", 0.3);
  EXPECT_FALSE(finding_of(facts, "gc_churn"));
  facts.source = Source::kTrace;
  EXPECT_TRUE(abstains(facts, "gc_churn"));
}

// 0.36 s of work in 0.4 s on the training thread: 40 ms per step become 4 + 36 / workers.
TEST(ScriptInput, WithoutWorkersTheyAreTheCure) {
  Facts facts = healthy();
  load(facts, 0, 0.33, 0.03);
  spend(facts, "fetch", 0.9);
  set(facts, "process.cpu_cores", 1);
  set(facts, "machine.busy_cores", 1);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, AllOf(HasSubstr("90 % of the time"), HasSubstr("num_workers=0")));
  EXPECT_THAT(found->option, ::testing::Eq("num_workers=6"));
  EXPECT_THAT(found->evidence, ::testing::Contains(HasSubstr("train.py:14")));
  EXPECT_NEAR(found->gain.speedup, 5, 2);  // the cores are busy for 0.4 s of 8
}

// On many cores the hand-over of a batch remains, 1 ms of each step: 10 of 40 ms per period.
TEST(ScriptInput, TheHandOverOfBatchesRemains) {
  Facts facts = healthy();
  load(facts, 0, 0.33, 0.03);
  spend(facts, "fetch", 0.9);
  set(facts, "machine.cores", 64);
  set(facts, "process.cpu_cores", 1);
  set(facts, "machine.busy_cores", 1);
  EXPECT_NEAR(finding_of(facts, "input_wait")->gain.speedup, 0.4 / (0.4 - 0.925 * 0.35), 0.3);
}

TEST(ScriptInput, WorkersThatWaitAreNotTheLimit) {
  Facts facts = healthy();
  spend(facts, "fetch", 0.3, 0.1);
  load(facts, 4, 0.55, 0.05);  // at work 38 % of the time
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  load(facts, 4, 0.95, 0.05);
  EXPECT_TRUE(finding_of(facts, "input_wait"));
}

TEST(ScriptInput, ShortWaitsAreHandOver) {
  Facts facts = healthy();
  load(facts, 4, 1.5, 0.1);
  spend(facts, "fetch", 0.03, 0.1);
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  spend(facts, "fetch", 0.08, 0.1);
  EXPECT_TRUE(finding_of(facts, "input_wait"));
  load(facts, 4, 0.5, 0.1);  // the workers wait, too
  EXPECT_FALSE(finding_of(facts, "input_wait"));
}

TEST(ScriptInput, WorkersBeyondTheCoresAreNoCure) {
  Facts facts = healthy();
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 2);
  set(facts, "machine.busy_cores", 2);
  set(facts, "switch.threads", 1);
  load(facts, 2, 0.5, 0.02);
  spend(facts, "fetch", 0.12);
  EXPECT_FALSE(finding_of(facts, "input_wait"));
  spend(facts, "fetch", 0.3);
  const auto found = finding_of(facts, "input_wait");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "");
}

// One core, which loading keeps busy: a worker would gain nothing, and the waiting is said all the same.
TEST(ScriptInput, OnOneCoreLessWorkIsTheCure) {
  Facts facts = healthy();
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
  Facts facts = healthy();
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 1.1);
  set(facts, "machine.busy_cores", 1.1);
  set(facts, "switch.threads", 2);
  load(facts, 0, 0.33, 0.01);
  spend(facts, "fetch", 0.85);
  EXPECT_THAT(finding_of(facts, "input_wait")->option, HasSubstr("torch.set_num_threads(1)"));
}

TEST(ScriptInput, WorkersThatSleepMayBeMoreThanCores) {
  Facts facts = healthy();
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
  Facts facts = healthy();
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

TEST(ScriptInput, CollateAndManyTensorsHaveNames) {
  Facts facts = healthy();
  set(facts, "machine.cores", 1);
  load(facts, 0, 0.1, 0.25);
  spend(facts, "fetch", 0.8);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, HasSubstr("collate makes the batch"));
  load(facts, 0, 0.25, 0.2);
  EXPECT_THAT(finding_of(facts, "input_wait")->claim, ::testing::Not(HasSubstr("collate")));
  Facts pieces = healthy();
  spend(pieces, "fetch", 0.5, 0.9);  // the training thread computes while it fetches: it unpacks
  set(pieces, "loader.tensors_per_batch", 90);
  EXPECT_THAT(finding_of(pieces, "input_wait")->claim, HasSubstr("90 tensors per batch"));
  set(pieces, "loader.tensors_per_batch", 40);
  EXPECT_THAT(finding_of(pieces, "input_wait")->claim, ::testing::Not(HasSubstr("tensors per batch")));
}

TEST(EpochRestart, SpeaksOfWorkersThatStartAnew) {
  Facts facts = healthy();
  set(facts, "loader.persistent", 0);
  set(facts, "loader.starts", 5);
  spend(facts, "loader_start", 0.03);
  const auto found = finding_of(facts, "epoch_restart");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "persistent_workers=True");
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.65 * 0.03), 0.005);
  spend(facts, "loader_start", 0.012);  // long epochs
  EXPECT_FALSE(finding_of(facts, "epoch_restart"));
  spend(facts, "loader_start", 0.3);
  set(facts, "loader.persistent", 1);  // the only start, late
  EXPECT_FALSE(finding_of(facts, "epoch_restart"));
}

TEST(GcChurn, TellsACallFromCollectionsByThemselves) {
  Facts facts = healthy();
  spend(facts, "gc", 0.03);
  EXPECT_EQ(finding_of(facts, "gc_churn")->option, "gc.freeze()");
  facts.sites = {{"gc", "train.py:40", "gc.collect()", "", 7}};
  const auto asked = finding_of(facts, "gc_churn");
  EXPECT_THAT(asked->claim, HasSubstr("train.py:40"));
  EXPECT_EQ(asked->option, "");
  spend(facts, "gc", 0.012);
  EXPECT_FALSE(finding_of(facts, "gc_churn"));
}

TEST(DebugApis, AnomalyDetectionCostsStacksAndChecks) {
  Facts facts = healthy();
  facts.words["switch.anomaly"] = "true";
  facts.sites = {{"other", "train.py:9", "loss = model(x)", "traceback", 30},
                 {"backward", "train.py:10", "", "torch", 70}};
  const auto found = finding_of(facts, "debug_apis_on");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("Anomaly detection"));
  EXPECT_GT(found->gain.speedup, 1.3);
  facts.words["switch.anomaly"] = "false";
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  facts.words["switch.profiler"] = "true";
  EXPECT_THAT(finding_of(facts, "debug_apis_on")->claim, HasSubstr("profiler"));
}

// On, and without effect: the step spends its time elsewhere.
TEST(DebugApis, ASwitchWithoutCostIsNoFinding) {
  Facts facts = healthy();
  facts.words["switch.anomaly"] = "true";
  spend(facts, "backward", 0.027);
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  spend(facts, "backward", 0.06);
  EXPECT_TRUE(finding_of(facts, "debug_apis_on"));
  spend(facts, "backward", 0.4);
  EXPECT_NEAR(finding_of(facts, "debug_apis_on")->gain.speedup, 1 / (1 - 0.5 * 0.4), 0.005);
}

TEST(OptimizerUnfused, SpeaksWhereTheOptimizerTakesTime) {
  Facts facts = healthy();
  facts.words["switch.optimizer.fused"] = "";
  spend(facts, "optimizer", 0.08);
  const auto found = finding_of(facts, "optimizer_unfused");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->cure, HasSubstr("torch.optim.AdamW(..., fused=True)"));
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 0.75 * 0.08), 0.005);
  spend(facts, "optimizer", 0.03);  // few parameters
  EXPECT_FALSE(finding_of(facts, "optimizer_unfused"));
  spend(facts, "optimizer", 0.3);
  facts.words["switch.optimizer.name"] = "LBFGS";  // there is no fused one
  EXPECT_FALSE(finding_of(facts, "optimizer_unfused"));
  facts.words["switch.optimizer.name"] = "AdamW";
  facts.words["switch.optimizer.fused"] = "true";
  EXPECT_FALSE(finding_of(facts, "optimizer_unfused"));
}

TEST(ZeroGrad, SpeaksOfZerosThatTakeTime) {
  Facts facts = healthy();
  facts.words["zero_grad.where"] = "train.py:20";
  spend(facts, "zero_grad", 0.03);
  EXPECT_THAT(finding_of(facts, "zero_grad_not_none")->claim, HasSubstr("train.py:20"));
  spend(facts, "zero_grad", 0.012);
  EXPECT_FALSE(finding_of(facts, "zero_grad_not_none"));
  spend(facts, "zero_grad", 0.1);
  facts.words.erase("zero_grad.where");  // freeing many gradients takes time, too
  EXPECT_FALSE(finding_of(facts, "zero_grad_not_none"));
}

TEST(EvalWithGrad, SpeaksOfEvaluationsThatRecordGraphs) {
  Facts facts = healthy();
  facts.words["evaluation.gradients"] = "true";
  facts.words["evaluation.where"] = "train.py:33";
  spend(facts, "evaluation", 0.03);
  EXPECT_THAT(finding_of(facts, "eval_with_grad")->claim, HasSubstr("train.py:33"));
  spend(facts, "evaluation", 0.012);
  EXPECT_FALSE(finding_of(facts, "eval_with_grad"));
  spend(facts, "evaluation", 0.3);
  EXPECT_NEAR(finding_of(facts, "eval_with_grad")->gain.speedup, 1 / (1 - 1.5 * 0.06 * 0.3), 0.003);
  facts.words["evaluation.gradients"] = "false";
  EXPECT_FALSE(finding_of(facts, "eval_with_grad"));
  facts.words.erase("evaluation.gradients");
  EXPECT_TRUE(abstains(facts, "eval_with_grad"));
}

TEST(KeptHistory, SpeaksOfGraphsThatStay) {
  Facts facts = healthy();
  set(facts, "graphs.deeper_per_step", 0.9);
  facts.words["graphs.name"] = "total";
  facts.words["graphs.where"] = "train.py:21";
  const Diagnosis diagnosis = examine(facts);
  ASSERT_FALSE(diagnosis.found.empty());
  EXPECT_TRUE(diagnosis.found[0].critical());
  EXPECT_THAT(diagnosis.verdict, AllOf(HasSubstr("`total`"), HasSubstr("memory grows")));
  set(facts, "graphs.deeper_per_step", 0.3);  // one in a few steps: a window
  EXPECT_FALSE(finding_of(facts, "kept_history"));
  set(facts, "graphs.more_per_step", 0.9);
  EXPECT_TRUE(finding_of(facts, "kept_history"));
  facts.figures.erase("graphs.more_per_step");
  EXPECT_TRUE(abstains(facts, "kept_history"));
}

TEST(HostLeak, SpeaksOfWorkersThatCopyTheirParent) {
  Facts facts = healthy();
  set(facts, "loader.copied_bytes_per_second", 1.5e6);
  ASSERT_TRUE(finding_of(facts, "host_leak"));
  EXPECT_FALSE(finding_of(facts, "host_leak")->danger.empty());
  set(facts, "loader.copied_bytes_per_second", 0.6e6);
  EXPECT_FALSE(finding_of(facts, "host_leak"));
  facts.figures.erase("loader.copied_bytes_per_second");
  EXPECT_TRUE(abstains(facts, "host_leak"));
}

TEST(Fp16WithoutScaler, ABf16OrAScalerIsFine) {
  Facts facts = healthy();
  facts.words["autocast.torch.float16"] = "cuda";
  EXPECT_FALSE(finding_of(facts, "fp16_without_scaler")->danger.empty());
  set(facts, "scaler.calls", 50);
  EXPECT_FALSE(finding_of(facts, "fp16_without_scaler"));
  facts.figures.erase("scaler.calls");
  facts.words.erase("autocast.torch.float16");
  facts.words["autocast.torch.bfloat16"] = "cuda";
  EXPECT_FALSE(finding_of(facts, "fp16_without_scaler"));
}

TEST(Fp16WithoutScaler, AFewStepsTellNothing) {
  Facts facts = healthy();
  facts.words["autocast.torch.float16"] = "cuda";
  facts.periods.resize(1);
  EXPECT_TRUE(abstains(facts, "fp16_without_scaler"));
  facts.periods = {healthy().periods[0], healthy().periods[1], healthy().periods[2]};
  EXPECT_TRUE(finding_of(facts, "fp16_without_scaler"));
}

TEST(ScalerCollapse, TheFirstStepsMayBeSkipped) {
  Facts facts = healthy();
  set(facts, "scaler.calls", 50);
  set(facts, "scaler.skipped", 15);
  set(facts, "scaler.scale", 2);
  EXPECT_THAT(finding_of(facts, "scaler_collapse")->claim, HasSubstr("30 % of 50 steps"));
  set(facts, "scaler.skipped", 6);
  EXPECT_FALSE(finding_of(facts, "scaler_collapse"));
}

TEST(SameBatch, OneWorkerMayReadAll) {
  Facts facts = healthy();
  set(facts, "loader.workers_with_same_batches", 2);
  EXPECT_FALSE(finding_of(facts, "same_batch")->danger.empty());
  set(facts, "loader.workers_with_same_batches", 1);
  EXPECT_FALSE(finding_of(facts, "same_batch"));
}

TEST(UnreadResult, NamesTheLine) {
  Facts facts = healthy();
  EXPECT_FALSE(finding_of(facts, "unread_result"));
  facts.words["dropped_result.where"] = "train.py:18";
  facts.words["dropped_result.name"] = "cuda";
  EXPECT_THAT(finding_of(facts, "unread_result")->claim, AllOf(HasSubstr(".cuda()"), HasSubstr("train.py:18")));
}

TEST(HostCode, SpeaksOfLibrariesInTheStep) {
  Facts facts = healthy();
  facts.sites = {{"other", "train.py:25", "rank = numpy.argsort(table * loss)", "", 15}};
  facts.calls = {{"step", "numpy", "rank (train.py:23)", 0.12},
                 {"step", "", "rank (train.py:23)", 0.03},  // table * loss
                 {"step", "torch", "", 0.7},
                 {"step", "", "forward (model.py:9)", 0.4},  // a * b of tensors
                 {"step", "torch", "forward (model.py:9)", 0.2},
                 {"step", "PIL", "__getitem__ (data.py:5)", 0.5},
                 {"loader", "PIL", "__getitem__ (data.py:5)", 0.9}};
  const auto found = finding_of(facts, "host_code");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, AllOf(HasSubstr("15 %"), HasSubstr("numpy in rank (train.py:23)")));
  EXPECT_THAT(found->evidence, ::testing::Contains(HasSubstr("train.py:25 (rank = numpy")));
  facts.calls[0].share = 0.06;
  facts.calls[1].share = 0;
  EXPECT_FALSE(finding_of(facts, "host_code"));
  facts.calls[0] = {"step", "sklearn", "", 0.4};
  EXPECT_THAT(finding_of(facts, "host_code")->claim, HasSubstr("sklearn in the training loop"));
}

TEST(ReduceEveryMicrobatch, OneSumPerStepIsEnough) {
  Facts facts = healthy();
  EXPECT_FALSE(finding_of(facts, "reduce_every_microbatch"));
  spend(facts, "backward", 0.5, 0.4);
  set(facts, "ranks.step", 40);
  set(facts, "ranks.syncs", 80);
  const auto found = finding_of(facts, "reduce_every_microbatch");
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.25 * 0.3 / 2), 0.02);  // 0.5 in backward, of which 0.3 is waiting
  set(facts, "ranks.syncs", 44);                                     // a few steps of a second optimizer
  EXPECT_FALSE(finding_of(facts, "reduce_every_microbatch"));
}

TEST(Ranks, OneSlowRankAndUnevenWorkAreTwoCauses) {
  Facts facts = healthy();
  set(facts, "ranks.seen", 4);
  set(facts, "ranks.waiting_share", 0.08);
  set(facts, "ranks.slowest", 2);
  set(facts, "ranks.slowest_share", 0.95);
  EXPECT_THAT(finding_of(facts, "straggler")->claim, HasSubstr("Rank 2 is the slowest in 95 % of the steps"));
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  set(facts, "ranks.slowest_share", 0.5);
  EXPECT_FALSE(finding_of(facts, "straggler"));
  EXPECT_THAT(finding_of(facts, "uneven_work")->claim, HasSubstr("8.0 % of the time"));
  set(facts, "ranks.waiting_share", 0.03);
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  set(facts, "ranks.slowest_share", 0.95);
  EXPECT_FALSE(finding_of(facts, "straggler"));
  facts.figures.erase("ranks.waiting_share");
  set(facts, "ranks.world", 4);
  EXPECT_TRUE(abstains(facts, "straggler"));
  EXPECT_TRUE(abstains(facts, "uneven_work"));
}

TEST(RanksDriftApart, EqualParametersAreFine) {
  Facts facts = healthy();
  set(facts, "ranks.digests", 1);
  EXPECT_FALSE(finding_of(facts, "ranks_drift_apart"));
  set(facts, "ranks.digests", 2);
  ASSERT_TRUE(finding_of(facts, "ranks_drift_apart"));
  EXPECT_FALSE(finding_of(facts, "ranks_drift_apart")->danger.empty());
}

TEST(Recompiles, OfAScriptAreItsOwnPart) {
  Facts facts = healthy();
  spend(facts, "compile", 0.03);
  EXPECT_THAT(finding_of(facts, "recompiles")->claim, HasSubstr("torch.compile"));
  spend(facts, "compile", 0.012);
  EXPECT_FALSE(finding_of(facts, "recompiles"));
}

TEST(OversubscribedThreads, OfWorkersHaveTheirOwnCure) {
  Facts facts = healthy();
  set(facts, "threads.main.waiting_cores", 0.08);
  set(facts, "threads.workers.cpu_cores", 7);
  set(facts, "process.cpu_cores", 8);
  set(facts, "machine.busy_cores", 8);
  set(facts, "loader.threads_per_worker", 4);
  EXPECT_EQ(finding_of(facts, "oversubscribed_threads")->option, "OMP_NUM_THREADS=1");
  set(facts, "loader.threads_per_worker", 1);
  EXPECT_EQ(finding_of(facts, "oversubscribed_threads")->option, "torch.set_num_threads(4)");
  set(facts, "threads.unnamed.cpu_cores", 0.15);
  EXPECT_TRUE(finding_of(facts, "oversubscribed_threads"));
  set(facts, "threads.unnamed.cpu_cores", 0.06);  // operators use one thread: the cores are full, and that is all
  EXPECT_FALSE(finding_of(facts, "oversubscribed_threads"));
}

}  // namespace
}  // namespace stoker::observe::doctor

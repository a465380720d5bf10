// SPDX-License-Identifier: Apache-2.0
// Rules that read a Python script's records: each with a sick training, a cured one, and one that looks sick and is
// not. The sick ones lie within a factor of two of the threshold, so that a threshold moved by that much fails here.
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
using ::testing::IsEmpty;
using testing::set;
using testing::spend;

TEST(ScriptRules, AHealthyScriptGetsNoAdvice) {
  const Diagnosis diagnosis = examine(healthy_script());
  EXPECT_THAT(diagnosis.found, IsEmpty());
  EXPECT_THAT(diagnosis.verdict, HasSubstr("Healthy"));
}

TEST(ScriptRules, NothingOfAScriptIsAFaultOfARun) {
  Facts facts = healthy_script();
  facts.source = Source::kRun;
  spend(facts, "gc", 0.3);
  EXPECT_FALSE(finding_of(facts, "gc_churn"));
  facts.source = Source::kTrace;
  EXPECT_TRUE(abstains(facts, "gc_churn"));
}

TEST(GcChurn, TellsACallFromCollectionsByThemselves) {
  Facts facts = healthy_script();
  spend(facts, "gc", 0.03);
  EXPECT_EQ(finding_of(facts, "gc_churn")->option, "gc.freeze()");
  facts.sites = {{"gc", "train.py:40", "gc.collect()", "", 7}};
  const auto asked = finding_of(facts, "gc_churn");
  EXPECT_THAT(asked->claim, HasSubstr("train.py:40"));
  EXPECT_EQ(asked->option, "");
  spend(facts, "gc", 0.012);
  EXPECT_FALSE(finding_of(facts, "gc_churn"));
}

// NumPy's threads spin after a histogram: the training, with two threads on two cores, waits for a core.
TEST(TrackerCost, ItsThreadsHoldTheTrainingUp) {
  Facts facts = healthy_script();
  spend(facts, "logging", 0.03, 1);
  set(facts, "loader.workers", 0);
  set(facts, "switch.threads", 2);
  set(facts, "machine.cores", 2);
  set(facts, "process.cpu_cores", 1.9);
  set(facts, "machine.busy_cores", 1.95);
  set(facts, "threads.main.waiting_cores", 0.03);
  EXPECT_NEAR(finding_of(facts, "tracker_cost")->gain.speedup, 1 / (1 - 1.175 * 0.03), 0.002);
  set(facts, "threads.main.waiting_cores", 0.08);
  const double held = 1 - 0.92 * 0.92;
  EXPECT_NEAR(finding_of(facts, "tracker_cost")->gain.speedup, 1 / (1 - 1.175 * (0.03 + held * 0.97)), 0.01);
  set(facts, "machine.busy_cores", 2.5);  // another program does
  EXPECT_LT(finding_of(facts, "tracker_cost")->gain.speedup, 1.04);
  set(facts, "machine.busy_cores", 2.2);
  EXPECT_GT(finding_of(facts, "tracker_cost")->gain.speedup, 1.1);
  set(facts, "loader.workers", 2);  // or workers do
  EXPECT_LT(finding_of(facts, "tracker_cost")->gain.speedup, 1.04);
}

TEST(TrackerCost, AThreadWithPythonsLockCountsAsLogging) {
  Facts facts = healthy_script();
  spend(facts, "logging", 0.005, 1);
  EXPECT_FALSE(finding_of(facts, "tracker_cost"));
  set(facts, "tracker.thread_share", 0.1);
  const auto found = finding_of(facts, "tracker_cost");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("Python's lock for 10 %"));
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.14 * 0.105), 0.002);
}

// Page faults are not among what the cure saves.
void keep_freed_memory(Facts& facts) {
  facts.words["switch.environment.MALLOC_TRIM_THRESHOLD_"] = "17179869184";
  facts.words["switch.environment.MALLOC_MMAP_MAX_"] = "0";
}

TEST(DebugApis, AnomalyDetectionCostsStacksAndChecks) {
  Facts facts = healthy_script();
  facts.words["switch.anomaly"] = "true";
  facts.sites = {{"other", "train.py:9", "loss = model(x)", "traceback", 30},
                 {"backward", "train.py:10", "", "torch", 70}};
  const auto found = finding_of(facts, "debug_apis_on");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("Anomaly detection"));
  const double saved = 0.3 + 0.5 * *facts.share("backward");
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.3 * saved), 0.01);
  keep_freed_memory(facts);
  EXPECT_NEAR(finding_of(facts, "debug_apis_on")->gain.speedup, 1 / (1 - 0.925 * saved), 0.01);
  facts.words["switch.anomaly"] = "false";
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  facts.words["switch.profiler"] = "true";
  EXPECT_THAT(finding_of(facts, "debug_apis_on")->claim, HasSubstr("profiler"));
}

// On, and without effect: the step spends its time elsewhere.
TEST(DebugApis, ASwitchWithoutCostIsNoFinding) {
  Facts facts = healthy_script();
  facts.words["switch.anomaly"] = "true";
  spend(facts, "backward", 0.027);
  EXPECT_FALSE(finding_of(facts, "debug_apis_on"));
  spend(facts, "backward", 0.05);
  EXPECT_TRUE(finding_of(facts, "debug_apis_on"));
  spend(facts, "backward", 0.4);
  EXPECT_NEAR(finding_of(facts, "debug_apis_on")->gain.speedup, 1 / (1 - 1.3 * 0.5 * 0.4), 0.005);
}

TEST(OptimizerUnfused, SpeaksWhereTheOptimizerTakesTime) {
  Facts facts = healthy_script();
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
  Facts facts = healthy_script();
  facts.words["zero_grad.where"] = "train.py:20";
  spend(facts, "zero_grad", 0.03);
  EXPECT_THAT(finding_of(facts, "zero_grad_not_none")->claim, HasSubstr("train.py:20"));
  spend(facts, "zero_grad", 0.012);
  EXPECT_FALSE(finding_of(facts, "zero_grad_not_none"));
  spend(facts, "zero_grad", 0.1);
  facts.words.erase("zero_grad.where");  // freeing many gradients takes time, too
  EXPECT_FALSE(finding_of(facts, "zero_grad_not_none"));
}

// On a CPU the memory of gradients that are None may cost as much as the zeros.
TEST(ZeroGrad, MayGainNothingOnACpu) {
  Facts facts = healthy_script();
  facts.words["zero_grad.where"] = "train.py:20";
  spend(facts, "zero_grad", 0.1);
  const auto worth_saying = [&] { return examine(facts).found.at(0).worth_saying(); };
  EXPECT_DOUBLE_EQ(finding_of(facts, "zero_grad_not_none")->gain.low, 1);
  EXPECT_FALSE(worth_saying());
  facts.words["switch.optimizer.devices"] = "cuda:0";
  EXPECT_GT(finding_of(facts, "zero_grad_not_none")->gain.low, 1.09);
  facts.words.erase("switch.optimizer.devices");
  facts.words["switch.environment.LD_PRELOAD"] = "/usr/lib/libjemalloc.so.2";
  EXPECT_TRUE(worth_saying());
}

Facts with_page_faults(double share) {
  Facts facts = healthy_script();
  set(facts, "process.page_faults_per_step", 8500);
  set(facts, "process.page_fault_share", share);
  set(facts, "page_fault.bytes", 4096);
  return facts;
}

TEST(PageFaults, SpeakOfMemoryThatComesBackInEachStep) {
  EXPECT_TRUE(abstains(healthy_script(), "page_faults"));
  const auto found = finding_of(with_page_faults(0.03), "page_faults");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->claim, HasSubstr("3.0 % of the time, in 8500 page faults per step"));
  EXPECT_THAT(found->evidence.at(0), HasSubstr("33.2 MiB of new pages per step"));
  EXPECT_NEAR(found->gain.speedup, 1 / (1 - 1.25 * 0.03), 0.002);
  EXPECT_FALSE(finding_of(with_page_faults(0.012), "page_faults"));
  EXPECT_NEAR(finding_of(with_page_faults(0.4), "page_faults")->gain.speedup, 2, 0.01);
  EXPECT_LT(finding_of(with_page_faults(0.9), "page_faults")->gain.speedup, 4) << "the rest of the step remains";
}

TEST(PageFaults, AreSilentWhereFreedMemoryIsKept) {
  const auto with = [](std::initializer_list<std::pair<const char*, const char*>> variables) {
    Facts facts = with_page_faults(0.3);
    for (const auto& [name, value] : variables) {
      facts.words["switch.environment." + std::string(name)] = value;
    }
    return finding_of(facts, "page_faults").has_value();
  };
  EXPECT_FALSE(with({{"MALLOC_TRIM_THRESHOLD_", "17179869184"}, {"MALLOC_MMAP_MAX_", "0"}}));
  EXPECT_FALSE(with({{"LD_PRELOAD", "/usr/lib/libjemalloc.so.2"}}));
  EXPECT_FALSE(with({{"GLIBC_TUNABLES", "glibc.malloc.trim_threshold=17179869184:glibc.malloc.mmap_max=0"}}));
  EXPECT_TRUE(with({{"MALLOC_TRIM_THRESHOLD_", "17179869184"}})) << "more blocks are mapped again";
  EXPECT_TRUE(with({{"MALLOC_TRIM_THRESHOLD_", "65536"}, {"MALLOC_MMAP_MAX_", "0"}}));
  EXPECT_TRUE(with({{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}}));
  EXPECT_TRUE(with({{"LD_PRELOAD", "/usr/lib/libother.so"}}));
}

TEST(EvalWithGrad, SpeaksOfEvaluationsThatRecordGraphs) {
  Facts facts = healthy_script();
  facts.words["evaluation.gradients"] = "true";
  facts.words["evaluation.where"] = "train.py:33";
  spend(facts, "evaluation", 0.03);
  EXPECT_THAT(finding_of(facts, "eval_with_grad")->claim, HasSubstr("train.py:33"));
  spend(facts, "evaluation", 0.012);
  EXPECT_FALSE(finding_of(facts, "eval_with_grad"));
  spend(facts, "evaluation", 0.3);
  EXPECT_NEAR(finding_of(facts, "eval_with_grad")->gain.speedup, 1 / (1 - 1.5 * 0.06 * 0.3), 0.003);
  keep_freed_memory(facts);
  EXPECT_NEAR(finding_of(facts, "eval_with_grad")->gain.speedup, 1 / (1 - 0.5 * 0.06 * 0.3), 0.003);
  facts.words["evaluation.gradients"] = "false";
  EXPECT_FALSE(finding_of(facts, "eval_with_grad"));
  facts.words.erase("evaluation.gradients");
  EXPECT_TRUE(abstains(facts, "eval_with_grad"));
}

TEST(KeptHistory, SpeaksOfGraphsThatStay) {
  Facts facts = healthy_script();
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
  EXPECT_THAT(finding_of(facts, "kept_history")->cure, HasSubstr("total += loss.detach()"));
  facts.words["graphs.holder"] = "list";
  EXPECT_THAT(finding_of(facts, "kept_history")->cure, HasSubstr("total.append(loss.detach())"));
  facts.figures.erase("graphs.more_per_step");
  EXPECT_TRUE(abstains(facts, "kept_history"));
}

TEST(Leak, SpeaksOfWhatOnlyCollectionWouldFree) {
  Facts facts = healthy_script();
  EXPECT_FALSE(finding_of(facts, "leak"));  // collection is on
  set(facts, "graphs.uncollected_per_step", 8);
  const auto found = finding_of(facts, "leak");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->danger, HasSubstr("memory grows"));
  set(facts, "graphs.uncollected_per_step", 3);
  EXPECT_FALSE(finding_of(facts, "leak"));
  set(facts, "graphs.uncollected_per_step", -100);  // collected by hand
  EXPECT_FALSE(finding_of(facts, "leak"));
}

TEST(HostLeak, SpeaksOfWorkersThatCopyTheirParent) {
  Facts facts = healthy_script();
  set(facts, "loader.copied_bytes_per_second", 1.5e6);
  ASSERT_TRUE(finding_of(facts, "host_leak"));
  EXPECT_FALSE(finding_of(facts, "host_leak")->danger.empty());
  set(facts, "loader.copied_bytes_per_second", 0.6e6);
  EXPECT_FALSE(finding_of(facts, "host_leak"));
  facts.figures.erase("loader.copied_bytes_per_second");
  EXPECT_TRUE(abstains(facts, "host_leak"));
}

TEST(Fp16WithoutScaler, ABf16OrAScalerIsFine) {
  Facts facts = healthy_script();
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
  Facts facts = healthy_script();
  facts.words["autocast.torch.float16"] = "cuda";
  facts.periods.resize(1);
  EXPECT_TRUE(abstains(facts, "fp16_without_scaler"));
  facts.periods = {healthy_script().periods[0], healthy_script().periods[1], healthy_script().periods[2]};
  EXPECT_TRUE(finding_of(facts, "fp16_without_scaler"));
}

TEST(ScalerCollapse, TheFirstStepsMayBeSkipped) {
  Facts facts = healthy_script();
  set(facts, "scaler.calls", 50);
  set(facts, "scaler.skipped", 15);
  set(facts, "scaler.scale", 2);
  EXPECT_THAT(finding_of(facts, "scaler_collapse")->claim, HasSubstr("30 % of 50 steps"));
  set(facts, "scaler.skipped", 6);
  EXPECT_FALSE(finding_of(facts, "scaler_collapse"));
}

TEST(DoublePrecision, CostsHalfOfTheComputing) {
  Facts facts = healthy_script();
  EXPECT_TRUE(abstains(facts, "double_precision"));
  set(facts, "switch.optimizer.float64_elements", 600);
  set(facts, "switch.optimizer.elements", 1000);
  spend(facts, "backward", 0.4);
  spend(facts, "optimizer", 0.1);
  const auto finding = finding_of(facts, "double_precision");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->evidence[0], HasSubstr("600 elements"));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 1.3 * 0.5 * 0.7), 0.05);  // with a forward pass of half of the backward
  Facts kept = facts;
  keep_freed_memory(kept);
  EXPECT_NEAR(finding_of(kept, "double_precision")->gain.speedup, 1 / (1 - 1.15 * 0.5 * 0.7), 0.05);
  facts.words["switch.optimizer.devices"] = R"(["cuda:0"])";  // of a GPU only its own work tells
  EXPECT_TRUE(abstains(facts, "double_precision"));
  facts.words.erase("switch.optimizer.devices");
  set(facts, "switch.optimizer.float64_elements", 400);
  EXPECT_FALSE(finding_of(facts, "double_precision"));
}

TEST(DataParallel, CopiesTheModelInEachStep) {
  Facts facts = healthy_script();
  EXPECT_FALSE(finding_of(facts, "data_parallel"));
  spend(facts, "data_parallel", 0.03);
  const auto finding = finding_of(facts, "data_parallel");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->cure, HasSubstr("torchrun"));
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 1.1 * 0.03), 0.002);
  spend(facts, "data_parallel", 0.015);
  EXPECT_FALSE(finding_of(facts, "data_parallel"));
}

// Steps of 40 ms, of which 1.2 ms are a search that finds nothing.
TEST(UnusedParameterSearch, CostsTimeWhereAllAreUsed) {
  Facts facts = healthy_script();
  set(facts, "ranks.step", 40);
  set(facts, "ranks.searching", 40 * 0.0012);
  EXPECT_FALSE(finding_of(facts, "unused_parameter_search"));  // it does not search
  set(facts, "ranks.unused_bytes", 0);
  const auto finding = finding_of(facts, "unused_parameter_search");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->option, "find_unused_parameters=False");
  EXPECT_NEAR(finding->gain.speedup, 1 / (1 - 0.03), 0.002);
  set(facts, "ranks.searching", 40 * 0.0006);
  EXPECT_FALSE(finding_of(facts, "unused_parameter_search"));
  set(facts, "ranks.searching", 40 * 0.0012);
  set(facts, "ranks.unused_bytes", 80);
  EXPECT_FALSE(finding_of(facts, "unused_parameter_search"));
}

TEST(SameBatch, OneWorkerMayReadAll) {
  Facts facts = healthy_script();
  set(facts, "loader.workers_with_same_batches", 2);
  EXPECT_FALSE(finding_of(facts, "same_batch")->danger.empty());
  set(facts, "loader.workers_with_same_batches", 1);
  EXPECT_FALSE(finding_of(facts, "same_batch"));
}

TEST(UnreadResult, NamesTheLine) {
  Facts facts = healthy_script();
  EXPECT_FALSE(finding_of(facts, "unread_result"));
  facts.words["dropped_result.where"] = "train.py:18";
  facts.words["dropped_result.name"] = "cuda";
  EXPECT_THAT(finding_of(facts, "unread_result")->claim, AllOf(HasSubstr(".cuda()"), HasSubstr("train.py:18")));
}

TEST(HostCode, SpeaksOfLibrariesInTheStep) {
  Facts facts = healthy_script();
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
  Facts facts = healthy_script();
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
  Facts facts = healthy_script();
  set(facts, "ranks.seen", 4);
  set(facts, "ranks.waiting_share", 0.16);  // of all four; the three others wait a third longer
  set(facts, "ranks.slowest", 2);
  set(facts, "ranks.slowest_share", 0.95);
  EXPECT_THAT(finding_of(facts, "straggler")->claim,
              HasSubstr("Rank 2 is the slowest in 95 % of the steps: the others wait 21 % of the time"));
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  set(facts, "ranks.slowest_share", 0.5);
  EXPECT_FALSE(finding_of(facts, "straggler"));
  EXPECT_THAT(finding_of(facts, "uneven_work")->claim, HasSubstr("16 % of the time"));
  set(facts, "ranks.waiting_share", 0.09);
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  set(facts, "ranks.slowest_share", 0.95);
  EXPECT_FALSE(finding_of(facts, "straggler"));
  facts.words["switch.optimizer.devices"] = R"(["cuda:0"])";  // with a GPU of its own nothing is in a rank's way
  EXPECT_TRUE(finding_of(facts, "straggler"));
  set(facts, "ranks.waiting_share", 0.045);
  EXPECT_FALSE(finding_of(facts, "straggler"));
  set(facts, "ranks.slowest_share", 0.5);
  EXPECT_FALSE(finding_of(facts, "uneven_work"));
  set(facts, "ranks.waiting_share", 0.09);
  EXPECT_TRUE(finding_of(facts, "uneven_work"));
  facts.words.erase("switch.optimizer.devices");
  facts.figures.erase("ranks.waiting_share");
  set(facts, "ranks.world", 4);
  EXPECT_TRUE(abstains(facts, "straggler"));
  EXPECT_TRUE(abstains(facts, "uneven_work"));
}

TEST(RanksDriftApart, EqualParametersAreFine) {
  Facts facts = healthy_script();
  set(facts, "ranks.digests", 1);
  EXPECT_FALSE(finding_of(facts, "ranks_drift_apart"));
  set(facts, "ranks.digests", 2);
  ASSERT_TRUE(finding_of(facts, "ranks_drift_apart"));
  EXPECT_FALSE(finding_of(facts, "ranks_drift_apart")->danger.empty());
}

TEST(Recompiles, OfAScriptAreItsOwnPart) {
  Facts facts = healthy_script();
  spend(facts, "compile", 0.03);
  EXPECT_THAT(finding_of(facts, "recompiles")->claim, HasSubstr("torch.compile"));
  spend(facts, "compile", 0.012);
  EXPECT_FALSE(finding_of(facts, "recompiles"));
}

TEST(OversubscribedThreads, OfWorkersHaveTheirOwnCure) {
  Facts facts = healthy_script();
  set(facts, "threads.main.waiting_cores", 0.08);
  set(facts, "threads.workers.cpu_cores", 7);
  set(facts, "process.cpu_cores", 8);
  set(facts, "machine.busy_cores", 8);
  set(facts, "loader.threads_per_worker", 4);
  EXPECT_EQ(finding_of(facts, "oversubscribed_threads")->option,
            "worker_init_fn=lambda worker: torch.set_num_threads(1)");
  set(facts, "cgroup.throttled_share", 0.5);  // the quota's cure would leave the workers as they are
  EXPECT_TRUE(finding_of(facts, "oversubscribed_threads"));
  facts.figures.erase("cgroup.throttled_share");
  set(facts, "loader.threads_per_worker", 1);
  EXPECT_FALSE(finding_of(facts, "oversubscribed_threads"))
      << "4 threads and 4 workers fit on 8 cores: others wait, too";
  set(facts, "loader.workers", 6);
  const auto found = finding_of(facts, "oversubscribed_threads");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->option, "torch.set_num_threads(2)");
  set(facts, "threads.workers.cpu_cores", 4.9);  // some of them sleep, and wait for a core when they wake up
  set(facts, "threads.workers.waiting_cores", 2);
  set(facts, "threads.tracker.cpu_cores", 4);
  EXPECT_FALSE(finding_of(facts, "oversubscribed_threads"));
  set(facts, "threads.workers.cpu_cores", 7);
  set(facts, "threads.unnamed.cpu_cores", 0.15);
  EXPECT_TRUE(finding_of(facts, "oversubscribed_threads"));
  set(facts, "threads.unnamed.cpu_cores", 0.06);  // operators use one thread: the cores are full, and that is all
  EXPECT_FALSE(finding_of(facts, "oversubscribed_threads"));
}

}  // namespace
}  // namespace stoker::observe::doctor

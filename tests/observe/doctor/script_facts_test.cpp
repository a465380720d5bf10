// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/script_facts.h"

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

std::string process(int pid, int parent) {
  return R"({"kind":"process","at":9,"pid":)" + std::to_string(pid) + R"(,"parent":)" + std::to_string(parent) +
         R"(,"argv":["python3","a/train.py","--x"],"python":"3.11.7"})"
         "\n"
         R"({"kind":"torch","at":9,"version":"2.11.0"})"
         "\n";
}

// A period of one second that ends with a step; a tenth of it goes to fetch.
std::string period(int last_step, double begin, double resident = 1e9, const std::string& more = "") {
  return R"({"kind":"period","begin":)" + std::to_string(begin) + R"(,"last_step":)" + std::to_string(last_step) +
         R"(,"steps":10,"seconds":1,"parts":{"fetch":[0.1,0.02],"backward":[0.5,0.4],"other":[0.4,0.4]},)"
         R"("resident_bytes":)" +
         std::to_string(resident) + more + "}\n";
}

// Sums of a worker's work at a time.
std::string loading(double at, int worker, int samples, const std::string& more = "") {
  return R"({"kind":"loading","at":)" + std::to_string(at) + R"(,"worker":)" + std::to_string(worker) +
         R"(,"samples":)" + std::to_string(samples) + R"(,"stages":{"samples":[)" + std::to_string(0.01 * samples) +
         "," + std::to_string(0.004 * samples) + "," + std::to_string(0.001 * samples) +
         R"(],"collate":[0,0,0]},"threads":1)" + more + "}\n";
}

class ScriptFacts : public ::testing::Test {
 protected:
  ScriptFacts() {
    folder_.write("monitor.jsonl",
                  "{\"cores\":4}\n"
                  R"({"event":"monitor","seconds":1,"figures":{"process.cpu_cores":2}})"
                  "\n");
    folder_.write("7.jsonl", process(7, 1) + training_ + period(10, 100) + period(20, 101) + period(30, 102));
  }
  [[nodiscard]] Facts read() const { return script_facts(folder_.path()); }

  const std::string training_ = "{\"kind\":\"training\",\"optimizer\":\"Adam\"}\n";
  TempFolder folder_;
};

// A worker that copies bytes per second in each of its first seconds, and none then; four records per second.
std::string copies(double bytes, double seconds, double life) {
  std::string records;
  for (double age = 0; age < life; age += 0.25) {
    const double copied = bytes * std::min(age, seconds);
    records += loading(
        10 + age, 0, static_cast<int>(100 * age),
        R"(,"private_bytes":)" + std::to_string(1e6 + copied) + R"(,"shared_bytes":)" + std::to_string(5e8 - copied));
  }
  return records;
}

TEST_F(ScriptFacts, MemoryThatWorkersCopyAtTheirStartIsNoLeak) {
  folder_.write("8.jsonl", process(8, 7) + copies(1e7, 100, 6));
  EXPECT_NEAR(*read().figure("loader.copied_bytes_per_second"), 1e7, 1);
  folder_.write("8.jsonl", process(8, 7) + copies(1e7, 3, 8));
  EXPECT_EQ(read().figure("loader.copied_bytes_per_second"), 0);
  folder_.write("8.jsonl", process(8, 7) + copies(1e7, 2, 2.5));  // too short a life to tell
  EXPECT_FALSE(read().figure("loader.copied_bytes_per_second"));
}

TEST_F(ScriptFacts, AreOfTheProcessThatTrains) {
  folder_.write("8.jsonl", process(8, 7));
  folder_.write("9.jsonl", process(9, 1) + period(900, 100));  // batches without an optimizer: an evaluation beside it
  const Facts facts = read();
  EXPECT_EQ(facts.source, Source::kScript);
  EXPECT_EQ(facts.job, "train.py, torch 2.11.0");
  EXPECT_EQ(training_process(folder_.path()).process, 7);
  ASSERT_EQ(facts.periods.size(), 2U);  // without the first
  EXPECT_EQ(facts.window(), "steps 11 to 30");
  EXPECT_DOUBLE_EQ(*facts.share("fetch"), 0.1);
  EXPECT_DOUBLE_EQ(facts.periods[0].parts.at("fetch").cpu_seconds, 0.02);
  EXPECT_DOUBLE_EQ(*facts.figure("machine.cores"), 4);
  EXPECT_DOUBLE_EQ(*facts.figure("process.cpu_cores"), 2);
  EXPECT_THAT(facts.damage, IsEmpty());
}

// From 100.5 to 102.5 it made 200 samples: half of a second of the first period, which is left out.
TEST_F(ScriptFacts, WorkOfWorkersIsSpreadOverTheirTime) {
  folder_.write("7.jsonl", process(7, 1) + training_ +
                               R"({"kind":"loader","loader":5,"workers":2,"persistent":true,"where":"train.py:3"})"
                               "\n" +
                               period(10, 100) + period(20, 101) + period(30, 102));
  folder_.write("8.jsonl", process(8, 7) + loading(100.5, 0, 100) + loading(102.5, 0, 300));
  folder_.write("9.jsonl", process(9, 4) + loading(100.5, 0, 100) + loading(102.5, 0, 999));  // of somebody else
  const Facts facts = read();
  ASSERT_TRUE(facts.periods[0].loader && facts.periods[1].loader);
  EXPECT_EQ(facts.periods[0].loader->samples, 100);
  EXPECT_EQ(facts.periods[1].loader->samples, 50);
  EXPECT_EQ(facts.periods[0].loader->threads, 2);
  const core::StageFigures& stage = facts.periods[0].loader->stages[1];
  EXPECT_EQ(stage.name, "samples");
  EXPECT_NEAR(stage.seconds, 1, 1e-9);
  EXPECT_NEAR(stage.cpu_seconds(), 0.4, 1e-9);
  EXPECT_NEAR(stage.asleep_seconds(), 0.5, 1e-9);  // a tenth waited for a core
  EXPECT_EQ(facts.word("loader.where"), "train.py:3");
  EXPECT_DOUBLE_EQ(*facts.figure("loader.persistent"), 1);
}

// A rank that multiprocessing spawned has no name of its own.
TEST_F(ScriptFacts, HaveTheNameOfTheProgramThatTheUserStarted) {
  folder_.write("1.jsonl", R"({"kind":"process","pid":1,"parent":0,"argv":["python3","spawn.py"]})"
                           "\n");
  folder_.write("7.jsonl", R"({"kind":"process","pid":7,"parent":1,"argv":["python3","-c","from multiprocessing"]})"
                           "\n" +
                               training_ + period(10, 100) + period(20, 101));
  EXPECT_EQ(read().job, "spawn.py");
}

TEST_F(ScriptFacts, TheGpuOfTheTrainingIsToldToTheMonitor) {
  EXPECT_EQ(training_process(folder_.path()).gpu_bus_id, "");
  folder_.write("7.jsonl", process(7, 1) + R"({"kind":"training","gpu":"00000000:3b:00.0"})" + "\n" + period(10, 100) +
                               period(20, 101));
  EXPECT_EQ(training_process(folder_.path()).gpu_bus_id, "00000000:3b:00.0");
}

TEST_F(ScriptFacts, CoresOfWorkersAreCountedOnce) {
  folder_.write("8.jsonl", process(8, 7) + loading(100, 0, 100, R"(,"cores":[0,1])"));
  folder_.write("9.jsonl", process(9, 7) + loading(100, 1, 100, R"(,"cores":[1])") + loading(101, 1, 200));
  EXPECT_DOUBLE_EQ(*read().figure("loader.cores"), 2);
}

// After step 10 a step holds 4 GB at most, and 1 GB stays; the allocator began anew 3 times in 30 steps.
TEST_F(ScriptFacts, MemoryOfTheGpuIsWhatStaysAndWhatAStepTakes) {
  const auto memory = [](int step, double allocated, double peak, int retries) {
    return R"({"kind":"memory","step":)" + std::to_string(step) + R"(,"allocated":)" + std::to_string(allocated) +
           R"(,"allocated_peak":)" + std::to_string(peak) + R"(,"reserved":5e9,"retries":)" + std::to_string(retries) +
           R"(,"total":8e9})" + "\n";
  };
  folder_.write("7.jsonl", process(7, 1) + training_ + period(10, 100) + period(20, 101) + memory(10, 2e9, 3e9, 1) +
                               memory(20, 1e9, 3.5e9, 2) + memory(40, 1.5e9, 4e9, 4));
  const Facts facts = read();
  EXPECT_DOUBLE_EQ(*facts.figure("memory.rest_bytes"), 1e9);
  EXPECT_DOUBLE_EQ(*facts.figure("memory.peak_bytes"), 4e9);
  EXPECT_DOUBLE_EQ(*facts.figure("memory.total_bytes"), 8e9);
  EXPECT_DOUBLE_EQ(*facts.figure("memory.retries_per_step"), 0.1);
}

// A rank that did not train longest ran out of memory; and a script that made no step.
TEST_F(ScriptFacts, MemoryRanOutInAnyProcess) {
  const std::string ended = R"({"kind":"out_of_memory","what":"gpu","phase":"backward","where":"t.py:3","step":9,)"
                            R"("requested":1e9,"free":null})"
                            "\n";
  folder_.write("8.jsonl", process(8, 7) + ended);
  Facts facts = read();
  EXPECT_EQ(facts.word("out_of_memory.where"), "t.py:3");
  EXPECT_DOUBLE_EQ(*facts.figure("out_of_memory.requested"), 1e9);
  EXPECT_FALSE(facts.figure("out_of_memory.free"));
  EXPECT_EQ(facts.steps(), 20);
  folder_.write("7.jsonl", process(7, 1));
  folder_.write("8.jsonl", process(8, 7) + ended + R"({"kind":"loader","loader":1,"batch":12})" + "\n");
  facts = read();
  EXPECT_EQ(facts.steps(), 0);
  EXPECT_DOUBLE_EQ(*facts.figure("loader.batch"), 12);
}

TEST_F(ScriptFacts, WorkersWithTheSameBatchesAreCounted) {
  const std::string same = R"(,"firsts":[5,6,7])";
  folder_.write("8.jsonl", process(8, 7) + loading(100, 0, 100, same));
  folder_.write("9.jsonl", process(9, 7) + loading(100, 1, 100, same));
  folder_.write("10.jsonl", process(10, 7) + loading(100, 1, 100, same));  // worker 1 of the next epoch
  EXPECT_DOUBLE_EQ(*read().figure("loader.workers_with_same_batches"), 2);
  folder_.write("11.jsonl", process(11, 7) + loading(100, 2, 100, R"(,"firsts":[5,6,8])"));
  EXPECT_DOUBLE_EQ(*read().figure("loader.workers_with_same_batches"), 1);  // the data repeats itself
  folder_.write("11.jsonl", process(11, 7));
  folder_.write("9.jsonl", process(9, 7) + loading(100, 1, 100, R"(,"firsts":[5,6,8])"));
  folder_.write("10.jsonl", process(10, 7));
  EXPECT_DOUBLE_EQ(*read().figure("loader.workers_with_same_batches"), 1);
  folder_.write("8.jsonl", process(8, 7) + loading(100, 0, 100, R"(,"firsts":[4,4,4])"));
  folder_.write("9.jsonl", process(9, 7) + loading(100, 1, 100, R"(,"firsts":[4,4,4])"));  // all samples are equal
  EXPECT_FALSE(read().figure("loader.workers_with_same_batches"));
}

// Two ranks; in steps 4 to 6 the second one works 30, 10 and 30 ms and the first one 10 ms. Step 7 has one record only.
TEST_F(ScriptFacts, RanksAreComparedStepByStep) {
  const auto rank = [&](int number, const std::string& work, int digest) {
    return training_ + period(10, 100) + R"({"kind":"ranks","rank":)" + std::to_string(number) +
           R"(,"world":2,"step":40,"first_step":3,"forwards":80,"syncs":40,"unused":0,"finds_unused":false,"digest":)" +
           std::to_string(digest) + R"(,"work":[)" + work + "]}\n";
  };
  folder_.write("7.jsonl", process(7, 1) + rank(0, "9,0.01,0.01,0.01,0.01", 5));
  folder_.write("8.jsonl", process(8, 1) + rank(1, "1,0.03,0.01,0.03", 6));
  folder_.write("9.jsonl", process(9, 4) + rank(0, "1,1,1,1", 7));  // another training
  const Facts facts = read();
  EXPECT_NEAR(*facts.figure("ranks.waiting_share"), (0.07 - 0.05) / 0.07, 1e-9);
  EXPECT_DOUBLE_EQ(*facts.figure("ranks.slowest"), 1);
  EXPECT_NEAR(*facts.figure("ranks.slowest_share"), 2.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(*facts.figure("ranks.seen"), 2);
  EXPECT_DOUBLE_EQ(*facts.figure("ranks.digests"), 2);
  EXPECT_DOUBLE_EQ(*facts.figure("ranks.syncs"), 40);
}

TEST_F(ScriptFacts, GrowthIsASlopeOverSteps) {
  std::string lines = process(7, 1) + training_;
  for (int i = 1; i <= 12; ++i) {
    lines += period(10 * i, 100 + i, 1e9 + 2e6 * (i > 3 ? 10.0 * i : 0));  // the start is another story
  }
  folder_.write("7.jsonl", lines);
  EXPECT_NEAR(*read().figure("process.resident_bytes_per_step"), 2e6, 1);
}

// Eight periods of a second and ten steps, of which the fifth is unlike the others.
std::string faulting(double faults, double system_seconds, double growth = 0, const std::string& fifth = "") {
  std::string lines = R"({"kind":"page_fault","seconds":2e-6,"bytes":4096})"
                      "\n";
  for (int i = 1; i <= 8; ++i) {
    const std::string fields =
        R"(,"page_faults":)" + std::to_string(faults) + R"(,"system_seconds":)" + std::to_string(system_seconds);
    lines += period(10 * i, 100 + i, 1e9 + growth * i, i == 5 && !fifth.empty() ? fifth : fields);
  }
  return lines;
}

TEST_F(ScriptFacts, PageFaultsAreThoseOfTheMiddlePeriod) {
  const auto with = [&](const std::string& lines) {
    folder_.write("7.jsonl", process(7, 1) + training_ + lines);
    return read();
  };
  const Facts facts = with(faulting(100'000, 0.15, 0, R"(,"page_faults":1000000,"system_seconds":0.9)"));
  EXPECT_NEAR(*facts.figure("process.page_faults_per_step"), 10'000, 1e-6);
  EXPECT_NEAR(*facts.figure("process.page_fault_share"), 0.15, 1e-9);
  EXPECT_NEAR(*with(faulting(10'000, 0.15)).figure("process.page_fault_share"), 0.02, 1e-9) << "the rest is other work";
  const Facts half = with(faulting(100'000, 0.15, 50'000 * 4096.0));
  EXPECT_NEAR(*half.figure("process.page_faults_per_step"), 5'000, 1e-3) << "the process grows";
  EXPECT_NEAR(*half.figure("process.page_fault_share"), 0.075, 1e-6);
}

TEST_F(ScriptFacts, PageFaultsOfBatchesAreTheWorkers) {
  folder_.write("7.jsonl", process(7, 1) + training_ + faulting(100'000, 0.2) +
                               R"({"kind":"loader","loader":1,"workers":2})"
                               "\n"
                               R"({"kind":"batch","loader":1,"tensors":2,"bytes":20480000})"
                               "\n");
  EXPECT_NEAR(*read().figure("process.page_faults_per_step"), 5'000, 1e-6);
}

TEST_F(ScriptFacts, NobodyCountedPageFaults) {
  const auto known = [&](const std::string& lines) {
    folder_.write("7.jsonl", process(7, 1) + training_ + lines);
    return read().figure("process.page_fault_share").has_value();
  };
  std::string none, null,
      forks = R"({"kind":"page_fault","seconds":2e-6,"bytes":4096})"
              "\n";
  for (int i = 1; i <= 8; ++i) {
    none += period(10 * i, 100 + i);
    null += period(10 * i, 100 + i, 1e9, R"(,"page_faults":null,"system_seconds":null)");
    forks +=
        period(10 * i, 100 + i, 1e9, R"(,"page_faults":9000,"system_seconds":0.2,"forks":)" + std::to_string(i % 2));
  }
  EXPECT_TRUE(known(faulting(9000, 0.2)));
  EXPECT_FALSE(known(none));
  EXPECT_FALSE(known(null));
  EXPECT_FALSE(known(forks)) << "a fork in each second period: the one after it copies pages";
  EXPECT_FALSE(known(faulting(9000, 0.2).substr(faulting(9000, 0.2).find('\n') + 1))) << "nobody knows what one costs";
}

TEST_F(ScriptFacts, StepsOfAnOptimizerReplaceBatches) {
  folder_.write("7.jsonl", process(7, 1) + period(500, 90) + period(510, 91) + training_ + period(10, 100));
  EXPECT_EQ(read().steps(), 10);
}

TEST_F(ScriptFacts, WithoutStepsTheReasonIsSaid) {
  folder_.write("7.jsonl", process(7, 1));
  EXPECT_THAT(examine(read()).verdict, HasSubstr("no optimizer made a step"));
  folder_.write("7.jsonl", R"({"kind":"process","pid":7,"parent":1,"argv":[]})"
                           "\n");
  EXPECT_THAT(examine(read()).verdict, HasSubstr("did not import torch"));
  std::filesystem::remove(folder_ / "7.jsonl");
  EXPECT_THAT(examine(read()).verdict, HasSubstr("Python did not load"));
  EXPECT_EQ(training_process(folder_.path()).process, 0);
}

TEST_F(ScriptFacts, DamageIsToldAndLeftOut) {
  const std::string deep(100'000, '[');
  folder_.write("8.jsonl", "\xFF\xFE\n[1]\n" + deep + "\n" + R"({"kind":"trouble","text":"loader: TypeError"})" + "\n" +
                               R"({"kind":"period","last_st)");
  const Facts facts = read();
  EXPECT_EQ(facts.steps(), 20);
  EXPECT_THAT(facts.damage,
              ElementsAre("loader: TypeError", AllOf(HasSubstr("3 records"), HasSubstr("cannot be read"))));
}

TEST_F(ScriptFacts, RecordsOfAnyTypeDoNoHarm) {
  for (const char* record :
       {R"({"kind":7})", R"({"kind":"period","parts":[1],"steps":1,"seconds":1})",
        R"({"kind":"period","parts":{"fetch":[1,"x"],"a":7},"steps":1e300,"seconds":"nan"})",
        R"({"kind":"loading","stages":{"samples":"x"},"worker":"y","firsts":{"a":1}})",
        R"({"kind":"loading","stages":{"samples":[1e300,1,1]},"at":"z","worker":1e300,"firsts":[null]})",
        R"({"kind":"loader","loader":[],"workers":{"a":1}})", R"({"kind":"sites","sites":[1,null,{"looks":"x"}]})",
        R"({"kind":"sites","sites":{"a":1}})",
        R"({"kind":"ranks","rank":1e300,"world":"x","work":[1,"y"],"digest":[]})",
        R"({"kind":"calls","rows":[1,{"seconds":"x"}],"seconds":[]})",
        R"({"kind":"switches","optimizer":[1,{"a":[]}]})", R"({"kind":"process","pid":1e300,"argv":{"a":1}})",
        R"({"kind":"batch","loader":5,"tensors":"x"})"}) {
    folder_.write("8.jsonl", std::string(record) + "\n" + record + "\n");
    EXPECT_EQ(examine(read()).found.size(), 0U) << record;
  }
}

TEST_F(ScriptFacts, AFolderWithoutRecordsIsRefused) {
  const TempFolder empty;
  EXPECT_FALSE(is_script_record(empty.path()));
  EXPECT_THROW((void)script_facts(empty.path()), DataError);
  EXPECT_THROW((void)script_facts(empty / "missing"), DataError);
}

}  // namespace
}  // namespace stoker::observe::doctor

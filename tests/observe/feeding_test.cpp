// SPDX-License-Identifier: Apache-2.0
// Computed pipelines with known answers: the stage that holds up the others, and the gain from more cores or threads.
#include "stoker/observe/feeding.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

// 10 s of a consumer that takes `step` seconds per sample, and of `threads` loader threads that take the stages'
// seconds per sample.
core::Fed pipeline(double step, int threads, std::vector<core::StageFigures> each, double copy = 0) {
  double loading = 0;
  for (const core::StageFigures& stage : each) {
    loading += stage.seconds;
  }
  const double sample = std::max({step, loading / threads, copy});
  core::Fed fed;
  fed.seconds = 10;
  fed.source.samples = static_cast<std::int64_t>(fed.seconds / sample);
  const auto samples = static_cast<double>(fed.source.samples);
  fed.waited_seconds = samples * (sample - step);
  fed.source.threads = threads;
  fed.source.copy_seconds = samples * copy;
  for (core::StageFigures& stage : each) {
    stage.seconds *= samples;
    stage.probed_seconds = stage.seconds;
    stage.probed_cpu_seconds *= samples;
    stage.probed_asleep_seconds *= samples;
  }
  fed.source.stages = std::move(each);
  fed.consumer = {{"step", 0.9 * step * samples}, {"log", 0.1 * step * samples}};
  return fed;
}

TEST(Feeding, NamesTheLongestStageAndTheCoresThatWouldFeed) {
  // 4 ms of computing per sample on one thread, and a consumer of 1 ms: three more cores raise 250 samples/s to 1,000.
  const Feeding feeding = explain(
      pipeline(1e-3, 1, {{"read", 5e-4, 5e-4, 5e-4}, {"JPEG decode", 3e-3, 3e-3, 3e-3}, {"resize", 5e-4, 5e-4, 5e-4}}));
  EXPECT_EQ(feeding.stage, "JPEG decode");
  EXPECT_NEAR(feeding.share, 0.75, 1e-9);
  EXPECT_NEAR(feeding.starved, 0.75, 1e-9);
  EXPECT_EQ(feeding.more_cores, 3);
  EXPECT_EQ(feeding.more_threads, 0);
  EXPECT_NEAR(feeding.predicted, 1000, 1);
  EXPECT_EQ(feeding.words, "data-starved 75 %: JPEG decode; with 3 more cores the loader would reach 1,000 samples/s");
}

TEST(Feeding, SleepingStagesNeedThreadsNotCores) {
  const Feeding feeding = explain(pipeline(1e-3, 2,
                                           {{.name = "read",
                                             .seconds = 9e-3,
                                             .probed_seconds = 9e-3,
                                             .probed_cpu_seconds = 1e-4,
                                             .probed_asleep_seconds = 8.9e-3},
                                            {"JPEG decode", 1e-3, 1e-3, 1e-3}}));
  EXPECT_EQ(feeding.stage, "read");
  EXPECT_EQ(feeding.more_cores, 0);
  EXPECT_EQ(feeding.more_threads, 8);
  EXPECT_NEAR(feeding.predicted, 1000, 1);
  EXPECT_NE(feeding.words.find("with 8 more loader threads the loader would reach 1,000 samples/s"), std::string::npos)
      << feeding.words;
}

// Threads that lose their cores to another program do not sleep: more threads would wait for cores, too.
TEST(Feeding, ThreadsThatWaitForCoresNeedCores) {
  const Feeding feeding = explain(pipeline(1e-3, 2, {{"read", 1e-3, 1e-3, 3e-4}, {"JPEG decode", 3e-3, 3e-3, 1e-3}}));
  EXPECT_EQ(feeding.more_threads, 0);
  EXPECT_EQ(feeding.more_cores, 2);
}

// 16 threads on two cores: the cores are always busy, although each thread works only an eighth of the time.
TEST(Feeding, ThreadsThatShareFewCoresAreBusyWhenTheseAre) {
  core::Fed fed = pipeline(1e-4, 2, {{"JPEG decode", 1e-3, 1e-3, 1e-3}}, 2e-4);
  fed.source.threads = 16;
  EXPECT_EQ(explain(fed).stage, "copy");
  fed.source.cores = 2;
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "JPEG decode");
  EXPECT_GT(feeding.more_cores, 0);
}

TEST(Feeding, ASlowCopyIsNotTheLoadersFault) {
  const Feeding feeding = explain(pipeline(1e-3, 4, {{"JPEG decode", 4e-3, 4e-3, 4e-3}}, 2e-3));
  EXPECT_EQ(feeding.stage, "copy");
  EXPECT_NEAR(feeding.starved, 0.5, 1e-9);
}

TEST(Feeding, ABusyConsumerIsToldFromALateLoader) {
  core::Fed fed = pipeline(1e-3, 2, {{"JPEG decode", 1e-3, 1e-3, 1e-3}});
  EXPECT_EQ(explain(fed).stage, "step");
  fed.consumer[1].seconds = 8;
  fed.consumer[0].seconds = 2;
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "log");
  EXPECT_NE(feeding.words.find("data is never late"), std::string::npos) << feeding.words;
}

// Checkpoints are named because they take more time than waiting. A step may take most of the time, and data is still
// late.
TEST(Feeding, WhatCostsMoreThanWaitingIsNamed) {
  core::Fed fed = pipeline(1e-3, 1, {{"JPEG decode", 1.25e-3, 1.25e-3, 1.25e-3}});
  EXPECT_EQ(explain(fed).stage, "JPEG decode");
  EXPECT_TRUE(explain(fed).late);
  fed.consumer = {{"step", 3}, {"log", 0.1}, {"checkpoint", 4.9}};
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "checkpoint");
  EXPECT_FALSE(feeding.late);  // data is not to blame
  EXPECT_NE(feeding.words.find("sometimes late (waiting 20.0 %"), std::string::npos) << feeding.words;
}

// Waiting for the device is part of the steps, not something that delays them.
TEST(Feeding, WaitingForTheDeviceHidesNoLateLoader) {
  core::Fed fed = pipeline(1e-3, 1, {{"JPEG decode", 1.25e-3, 1.25e-3, 1.25e-3}});
  fed.consumer = {{"step", 1}, {"device wait", 6.9}, {"log", 0.1}};
  const Feeding late = explain(fed);
  EXPECT_TRUE(late.late);
  EXPECT_EQ(late.stage, "JPEG decode");
  fed.waited_seconds = 0;
  EXPECT_NE(explain(fed).words.find("data is never late (waiting 0.0 % of the time); device wait takes 86 %"),
            std::string::npos)
      << explain(fed).words;
}

TEST(Feeding, OneSlowSampleIsNamed) {
  core::Fed fed = pipeline(1e-3, 4, {{"read", 1e-4, 1e-4, 1e-4}});
  fed.waited_seconds = 5;
  fed.source.samples = 5000;
  fed.source.stages[0].seconds = 5.5;
  fed.source.slowest_seconds = 5;
  fed.source.slowest = "a/b.jpg";
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "one sample");
  EXPECT_NE(feeding.words.find("a/b.jpg"), std::string::npos) << feeding.words;
}

// 10 s of a consumer that loads between steps: it waits for `waited` seconds, and its threads decode for `decoding`
// seconds.
core::Fed between_steps(double waited, double decoding) {
  core::Fed fed;
  fed.seconds = 10;
  fed.waited_seconds = waited;
  fed.source.samples = 1000;
  fed.source.threads = 0;
  fed.source.stages = {{"PNG decode", decoding, decoding, decoding}};
  return fed;
}

// One more core would take over the loading.
TEST(Feeding, LoadingBetweenStepsAsksForACore) {
  core::Fed fed = between_steps(5, 5);
  fed.consumer = {{"step", 5}};
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "PNG decode");
  EXPECT_EQ(feeding.more_cores, 1);
  EXPECT_NEAR(feeding.predicted, 200, 1e-9);
}

// An operator's eight threads load for a tenth of the time. The copy, which takes 60 %, does not wait for them.
TEST(Feeding, ThreadsBetweenStepsAreBusyTogether) {
  core::Fed fed = between_steps(6, 8);
  fed.source.cores = 8;
  fed.source.copy_seconds = 6;
  EXPECT_EQ(explain(fed).stage, "copy");
}

TEST(Feeding, NothingKnownIsNothingClaimed) {
  EXPECT_EQ(explain({}).words, "");
  core::Fed fed;
  fed.seconds = 1;
  fed.waited_seconds = 1;
  const Feeding feeding = explain(fed);
  EXPECT_EQ(feeding.stage, "");
  EXPECT_EQ(feeding.words, "data-starved 100 %: loading");
}

}  // namespace
}  // namespace stoker::observe

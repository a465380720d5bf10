// SPDX-License-Identifier: Apache-2.0
// Time goes to the stage it was spent in, computing and sleeping apart, also where only some samples are timed.
#include "stoker/data/stage_laps.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "stoker/base/clock.h"

namespace stoker::data {
namespace {

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void compute_us(double us) {
  const double until = thread_cpu_s() + 1e-6 * us;
  while (thread_cpu_s() < until) {
  }
}

core::SourceFigures sum_of(const StageLaps& laps, std::int64_t& slowest) {
  const StageLaps* const all[] = {&laps};
  return sum(all, slowest);
}

const core::StageFigures& stage(const core::SourceFigures& figures, std::string_view name) {
  const auto found = std::ranges::find(figures.stages, name, &core::StageFigures::name);
  EXPECT_NE(found, figures.stages.end()) << name;
  return *found;
}

TEST(StageLaps, TellsStagesApartAndSleepingFromComputing) {
  StageLaps laps;
  for (int sample = 0; sample < 4; ++sample) {
    laps.begin(sample);
    sleep_ms(sample == 2 ? 40 : 5);  // open
    laps.enter(Stage::kRead);
    laps.pause();
    sleep_ms(5);  // for others
    laps.enter(Stage::kJpeg);
    compute_us(3000);
    laps.end();
  }
  sleep_ms(5);  // between samples
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, 4);
  EXPECT_EQ(slowest, 2);
  EXPECT_GE(figures.slowest_seconds, 0.043);
  EXPECT_GE(stage(figures, "open").seconds, 0.055);  // a sleep is never shorter
  EXPECT_LE(stage(figures, "open").cpu_seconds(), 0.3 * stage(figures, "open").seconds);
  EXPECT_GE(stage(figures, "JPEG decode").seconds, 0.012);
  EXPECT_LT(stage(figures, "read").seconds, 0.2 * stage(figures, "open").seconds);
  EXPECT_EQ(figures.stages.size(), 3U);
}

// On a core that another thread keeps busy.
TEST(StageLaps, WaitingForACoreIsNotSleeping) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int core = ::sched_getcpu();
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> enough = false;
  const std::jthread other([&] {  // on the same core
    while (!enough) {
    }
  });
  StageLaps laps;
  for (int sample = 0; sample < 4; ++sample) {
    laps.begin(sample);
    sleep_ms(5);  // open
    laps.enter(Stage::kRead);
    compute_us(30'000);
    laps.end();
  }
  enough = true;
  ::sched_setaffinity(0, sizeof before, &before);
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_GE(stage(figures, "open").asleep_seconds(), 0.02);
  EXPECT_GE(stage(figures, "read").seconds, 0.15) << "nothing took the core away";
  EXPECT_LE(stage(figures, "read").cpu_seconds(), 0.8 * stage(figures, "read").seconds);
  EXPECT_EQ(stage(figures, "read").asleep_seconds(), 0);
}

// Of short samples one in 32 is timed and counts for all: seconds by the estimate, of those that it really took.
double estimated(double us) {
  StageLaps laps;
  constexpr int kSamples = 3200;
  double inside = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    laps.begin(sample);
    const double before = thread_cpu_s();
    laps.enter(Stage::kResize);
    compute_us(us);
    inside += thread_cpu_s() - before;
    laps.end();
  }
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, kSamples);
  EXPECT_GE(stage(figures, "resize").seconds, 1e-6 * us * (kSamples - 32));  // those behind the last one that was timed
  return stage(figures, "resize").seconds / inside;
}

TEST(StageLaps, WhatIsNotTimedIsEstimated) {
  // Where the thread has to wait for a core within a sample that is timed, that counts 32 times. A sample in 32 is, so
  // that soon comes a time without.
  double least = estimated(2);
  for (int attempt = 0; attempt < 50 && least > 1.5; ++attempt) {
    least = std::min(least, estimated(2));
  }
  EXPECT_LE(least, 1.5);
}

TEST(StageLaps, ABrokenOffSampleEndsWithTheNext) {
  StageLaps laps;
  laps.begin(0);
  sleep_ms(3);
  laps.begin(1);
  laps.enter(Stage::kPng);
  laps.end();
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, 2);
  EXPECT_EQ(slowest, 0);
  EXPECT_GE(stage(figures, "open").seconds, 0.003);
}

TEST(StageLaps, TwoLooksAreSubtracted) {
  core::SourceFigures first, second;
  first.wall_seconds = 2;
  first.samples = 10;
  first.stages = {{"read", 100, 10, 9, 0.5}};
  second.wall_seconds = 5;
  second.samples = 30;
  second.threads = 3;
  second.stages = {{"read", 103, 12, 9.5, 1.5}, {"resize", 2}};
  const core::SourceFigures both = core::between(first, second);
  EXPECT_EQ(both.wall_seconds, 3);
  EXPECT_EQ(both.samples, 20);
  EXPECT_EQ(both.threads, 3);
  EXPECT_EQ(stage(both, "read").seconds, 3);
  EXPECT_EQ(stage(both, "read").cpu_seconds(), 0.75);  // of what was probed in between alone
  EXPECT_EQ(stage(both, "read").asleep_seconds(), 1.5);
  EXPECT_EQ(stage(both, "resize").cpu_seconds(), 2);
  EXPECT_EQ(both.busy_seconds(), 5);
}

}  // namespace
}  // namespace stoker::data

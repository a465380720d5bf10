// SPDX-License-Identifier: Apache-2.0
// Time is counted for the stage in which it was spent, separately for computing and sleeping, also if only some samples
// are timed.
#include "stoker/data/folder/stage_laps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace stoker::data {
namespace {

// A simulated thread whose times are set by the tests.
struct Thread {
  std::int64_t now = 0;
  LapClock::Probe spent;

  void compute_us(std::int64_t us) {
    now += us * 1000;
    spent.cpu_ns += us * 1000;
  }
  void sleep_us(std::int64_t us) {
    now += us * 1000;
    ++spent.waits;
  }
  void lose_core_us(std::int64_t us) { now += us * 1000; }
} thread;

constexpr LapClock kClock{[] { return thread.now; }, [] { return thread.spent; }};

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
  StageLaps laps(kClock);
  for (int sample = 0; sample < 4; ++sample) {
    laps.begin(sample);
    thread.sleep_us(sample == 2 ? 40'000 : 5000);  // open
    laps.enter(Stage::kRead);
    laps.pause();
    thread.sleep_us(5000);  // for others
    laps.enter(Stage::kJpeg);
    thread.compute_us(3000);
    laps.end();
  }
  thread.sleep_us(5000);  // between samples
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, 4);
  EXPECT_EQ(slowest, 2);
  EXPECT_DOUBLE_EQ(figures.slowest_seconds, 0.043);
  EXPECT_DOUBLE_EQ(stage(figures, "open").seconds, 0.055);
  EXPECT_EQ(stage(figures, "open").cpu_seconds(), 0);
  EXPECT_DOUBLE_EQ(stage(figures, "open").asleep_seconds(), 0.055);
  EXPECT_DOUBLE_EQ(stage(figures, "JPEG decode").seconds, 0.012);
  EXPECT_DOUBLE_EQ(stage(figures, "JPEG decode").cpu_seconds(), 0.012);
  EXPECT_EQ(stage(figures, "JPEG decode").asleep_seconds(), 0);
  EXPECT_EQ(figures.stages.size(), 2U) << "reading took no time, and pauses belong to no stage";
}

// The thread loses its core to another thread.
TEST(StageLaps, WaitingForACoreIsNotSleeping) {
  StageLaps laps(kClock);
  for (int sample = 0; sample < 4; ++sample) {
    laps.begin(sample);
    thread.sleep_us(5000);  // open
    laps.enter(Stage::kRead);
    thread.compute_us(30'000);
    thread.lose_core_us(20'000);
    laps.end();
  }
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_DOUBLE_EQ(stage(figures, "open").asleep_seconds(), 0.02);
  EXPECT_DOUBLE_EQ(stage(figures, "read").seconds, 0.2);
  EXPECT_DOUBLE_EQ(stage(figures, "read").cpu_seconds(), 0.12);
  EXPECT_EQ(stage(figures, "read").asleep_seconds(), 0);
}

// One in 31 short samples is timed, and its time counts for all 31.
TEST(StageLaps, WhatIsNotTimedIsEstimated) {
  StageLaps laps(kClock);
  constexpr int kSamples = 3100;
  for (int sample = 0; sample < kSamples; ++sample) {
    laps.begin(sample);
    laps.enter(Stage::kResize);
    thread.compute_us(2);
    laps.end();
  }
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, kSamples);
  // The first sample counts only for itself, since its duration was not known before.
  EXPECT_NEAR(stage(figures, "resize").seconds, 2e-6 * kSamples, 2e-6 * 31);
}

TEST(StageLaps, ABrokenOffSampleEndsWithTheNext) {
  StageLaps laps(kClock);
  laps.begin(0);
  thread.sleep_us(3000);
  laps.begin(1);
  laps.enter(Stage::kPng);
  laps.end();
  std::int64_t slowest = -1;
  const core::SourceFigures figures = sum_of(laps, slowest);
  EXPECT_EQ(figures.samples, 2);
  EXPECT_EQ(slowest, 0);
  EXPECT_DOUBLE_EQ(stage(figures, "open").seconds, 0.003);
}

// The machine's own clocks: a sleep takes at least its time and is a wait, computing takes CPU time.
TEST(StageLaps, TheSystemTellsSleepingFromComputing) {
  const LapClock& clock = system_lap_clock();
  const std::int64_t start = clock.now_ns();
  const LapClock::Probe before = clock.probe();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(clock.now_ns() - start, 2'000'000);
  EXPECT_GT(clock.probe().waits, before.waits);
  while (clock.probe().cpu_ns - before.cpu_ns < 1'000'000) {  // would not end if cpu_ns were not this thread's CPU time
  }
  EXPECT_GE(clock.now_ns() - start, 3'000'000);
}

TEST(StageLaps, TwoLooksAreSubtracted) {
  core::SourceFigures first, second;
  first.wall_seconds = 2;
  first.samples = 10;
  first.stages = {
      {.name = "read", .seconds = 100, .probed_seconds = 10, .probed_cpu_seconds = 9, .probed_asleep_seconds = 0.5}};
  second.wall_seconds = 5;
  second.samples = 30;
  second.threads = 3;
  second.stages = {
      {.name = "read", .seconds = 103, .probed_seconds = 12, .probed_cpu_seconds = 9.5, .probed_asleep_seconds = 1.5},
      {"resize", 2}};
  const core::SourceFigures both = core::between(first, second);
  EXPECT_EQ(both.wall_seconds, 3);
  EXPECT_EQ(both.samples, 20);
  EXPECT_EQ(both.threads, 3);
  EXPECT_EQ(stage(both, "read").seconds, 3);
  EXPECT_EQ(stage(both, "read").cpu_seconds(), 0.75);  // from the time probed between the two figures
  EXPECT_EQ(stage(both, "read").asleep_seconds(), 1.5);
  EXPECT_EQ(stage(both, "resize").cpu_seconds(), 2);
  EXPECT_EQ(both.busy_seconds(), 5);
}

}  // namespace
}  // namespace stoker::data

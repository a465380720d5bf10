// SPDX-License-Identifier: Apache-2.0
// The governor on a simulated machine: it finds the smallest sufficient number of threads, and keeps it.
#include "stoker/data/load/thread_governor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::data {
namespace {

// A consumer takes `step` seconds per sample. Meanwhile each thread needs `cpu` seconds of computing on one of `cores`
// cores and `sleep` seconds of sleep per sample.
struct Machine {
  double step = 0, cpu = 0, sleep = 0;
  int cores = 1;
  core::SourceFigures figures = {};

  // Seconds per sample with that many threads: those of the consumer or of loading, whichever is slower.
  [[nodiscard]] double sample_seconds(int threads) const {
    const double loading = std::max((cpu + sleep) / threads, cpu / cores);
    return std::max(step, loading);
  }
  void work(int threads, double seconds) {
    const double each = sample_seconds(threads);
    const double samples = seconds / each;
    figures.wall_seconds += seconds;
    figures.wait_seconds += samples * (each - step);
    figures.samples += static_cast<std::int64_t>(samples);
    figures.stages.resize(2);
    figures.stages[0].name = "read";
    figures.stages[0].seconds += samples * sleep;
    figures.stages[0].probed_seconds += samples * sleep;
    figures.stages[0].probed_asleep_seconds += samples * sleep;
    figures.stages[1].name = "JPEG decode";
    figures.stages[1].seconds += samples * cpu;
    figures.stages[1].probed_seconds += samples * cpu;
    figures.stages[1].probed_cpu_seconds += samples * cpu;
  }
};

// The number of threads after that many seconds, in batches of 0.05 s.
int settle(ThreadGovernor& governor, Machine& machine, int threads, double seconds) {
  for (double time = 0; time < seconds; time += 0.05) {
    machine.work(threads, 0.05);
    threads = governor.look(machine.figures);
  }
  return threads;
}

int settle(const ThreadLimits& limits, Machine machine, double seconds = 20) {
  ThreadGovernor governor(limits);
  return settle(governor, machine, limits.start, seconds);
}

TEST(ThreadGovernor, AddsThreadsUntilTheConsumerNeverWaits) {
  EXPECT_EQ(settle({1, 16, 32}, {.step = 1e-3, .cpu = 5e-3, .cores = 16}), 5);
}

TEST(ThreadGovernor, TakesAwayWhatIsNotNeeded) {
  const int threads = settle({12, 16, 32}, {.step = 1e-3, .cpu = 2.2e-3, .cores = 16});
  EXPECT_EQ(threads, 3);
}

TEST(ThreadGovernor, NeverComputesOnMoreThanTheCores) {
  EXPECT_EQ(settle({1, 4, 20}, {.step = 1e-4, .cpu = 5e-3, .cores = 4}), 4);
}

TEST(ThreadGovernor, GoesBeyondTheCoresWhereThreadsSleep) {
  Machine disk{.step = 1e-3, .cpu = 5e-4, .sleep = 1e-2, .cores = 2};
  const int threads = settle({2, 2, 18}, disk);
  EXPECT_GE(threads, 10);
  EXPECT_LE(disk.sample_seconds(threads), 1.05 * disk.step);
}

// Time without a core, because another program uses it, is not waiting for a disk, even while a file is read.
TEST(ThreadGovernor, StaysWithinTheCoresWhereThreadsWaitForThem) {
  Machine crowded{.step = 1e-4, .cpu = 1e-3, .sleep = 5e-4, .cores = 2};
  ThreadGovernor governor({1, 2, 18});
  int threads = 1;
  for (int i = 0; i < 400; ++i) {
    crowded.work(threads, 0.05);
    crowded.figures.stages[0].probed_asleep_seconds = 0;
    crowded.figures.stages[1].probed_cpu_seconds *= 0.5;
    threads = governor.look(crowded.figures);
    ASSERT_LE(threads, 2);
  }
  EXPECT_EQ(threads, 2);
}

// A disk that serves one thread at a time: more threads gain nothing.
TEST(ThreadGovernor, GoesBackWhereMoreGainNothing) {
  Machine crowded{.step = 1e-4, .cpu = 5e-4, .sleep = 5e-4, .cores = 2};
  ThreadGovernor governor({1, 1, 17});
  int threads = 1;
  int longest = 0, now = 0;
  for (int i = 0; i < 1200; ++i) {
    crowded.work(1, 0.05);  // the same speed for every number of threads
    threads = governor.look(crowded.figures);
    now = threads == 1 ? 0 : now + 1;
    longest = std::max(longest, now);
  }
  EXPECT_EQ(threads, 1);
  EXPECT_LE(longest, 20);  // calls of look(): one window to settle and one to measure
}

// From a cold disk to a warm page cache: once threads no longer sleep, there are no more threads than cores.
TEST(ThreadGovernor, ComesBackToTheCoresWhenTheDiskIsFast) {
  Machine machine{.step = 1e-4, .cpu = 5e-4, .sleep = 1e-2, .cores = 2};
  ThreadGovernor governor({2, 2, 18});
  const int on_disk = settle(governor, machine, 2, 20);
  EXPECT_GT(on_disk, 2);
  machine.sleep = 0;
  EXPECT_EQ(settle(governor, machine, on_disk, 5), 2);
}

// One more thread ends the waiting, but it raises the rate by no more than the share of time that was waited.
TEST(ThreadGovernor, EndsWaitingThatIsLessThanTheGainItLooksFor) {
  EXPECT_EQ(settle({5, 16, 32}, {.step = 1e-3, .cpu = 5.07e-3, .cores = 16}), 6);
}

// While the consumer is away, no batches are taken. Idle threads during that time do not mean that there are too many.
TEST(ThreadGovernor, APauseOfTheConsumerChangesNothing) {
  Machine machine{.step = 1e-3, .cpu = 7.5e-3, .cores = 16};
  ThreadGovernor governor({8, 16, 32});
  int threads = settle(governor, machine, 8, 20);
  ASSERT_EQ(threads, 8);
  for (int epoch = 0; epoch < 5; ++epoch) {
    machine.figures.wall_seconds += 20;
    governor.consumer_was_away(machine.figures);
    for (int i = 0; i < 40; ++i) {
      machine.work(threads, 0.05);
      threads = governor.look(machine.figures);
      ASSERT_EQ(threads, 8);
    }
  }
}

TEST(ThreadGovernor, AdaptsWhenTheConsumerChanges) {
  ThreadGovernor governor({1, 16, 32});
  Machine machine{.step = 1e-2, .cpu = 5e-3, .cores = 16};
  int threads = settle(governor, machine, 1, 10);
  EXPECT_EQ(threads, 1);
  machine.step = 1e-3;
  threads = settle(governor, machine, threads, 20);
  EXPECT_EQ(threads, 5);
  machine.step = 1e-2;
  EXPECT_EQ(settle(governor, machine, threads, 20), 1);
}

}  // namespace
}  // namespace stoker::data

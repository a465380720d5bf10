// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/stage_laps.h"

#include <time.h>

namespace stoker::data {
namespace {

// Looking at the clock takes some 25 ns: six times a sample is 1 % of 15 us, and of a 31st of that. Odd, as what
// happens now and then does so at multiples of powers of two: shares of batches, blocks of MixUp.
constexpr std::int64_t kShort = 20'000, kStride = 31;
// A thread's CPU time is a call of the kernel, some 250 ns: its share is found from every 16th that is timed, and from
// all that follow one of at least a millisecond.
constexpr std::int64_t kCpuEach = 16, kLong = 1'000'000;

std::int64_t ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

}  // namespace

void StageLaps::begin(std::int64_t sample) {
  end();
  samples_.add(1);
  sample_ = sample;
  if (untimed_ > 0) {
    --untimed_;
  } else {
    timing_ = true;
    timing_cpu_ = sample_ns_ >= kLong || timed_++ % kCpuEach == 0;
    sample_ns_ = 0;
    lap(static_cast<int>(Stage::kOpen));
  }
  if (on_enter) {
    on_enter(Stage::kOpen, sample);
  }
}

void StageLaps::lap(int next) {
  const std::int64_t now = ns(CLOCK_MONOTONIC);
  const std::int64_t cpu = timing_cpu_ ? ns(CLOCK_THREAD_CPUTIME_ID) : 0;
  if (stage_ != kNone) {
    const std::int64_t took = now - lap_ns_;
    sample_ns_ += took;
    StageTime& time = times_[static_cast<std::size_t>(stage_)];
    time.wall.add(took * stride_);
    if (timing_cpu_) {
      time.cpu.add(cpu - lap_cpu_ns_);
      time.wall_of_cpu.add(took);
    }
  }
  stage_ = next;
  lap_ns_ = now;
  lap_cpu_ns_ = cpu;
}

void StageLaps::end() {
  if (!timing_) {
    return;
  }
  lap(kNone);
  timing_ = false;
  if (sample_ns_ > slowest_ns_.load(std::memory_order_relaxed)) {
    slowest_ns_.store(sample_ns_, std::memory_order_relaxed);
    slowest_sample_.store(sample_, std::memory_order_relaxed);
  }
  stride_ = sample_ns_ < kShort ? kStride : 1;
  untimed_ = stride_ - 1;
}

core::SourceFigures sum(std::span<const StageLaps* const> threads, std::int64_t& slowest) {
  core::SourceFigures figures;
  slowest = -1;
  std::int64_t slowest_ns = 0;
  for (std::size_t stage = 0; stage < kStageNames.size(); ++stage) {
    std::int64_t wall = 0, cpu = 0, wall_of_cpu = 0;
    for (const StageLaps* thread : threads) {
      const StageLaps::StageTime& time = thread->times_[stage];
      wall += time.wall.value.load(std::memory_order_relaxed);
      cpu += time.cpu.value.load(std::memory_order_relaxed);
      wall_of_cpu += time.wall_of_cpu.value.load(std::memory_order_relaxed);
    }
    if (wall > 0) {
      figures.stages.push_back({std::string(kStageNames[stage]), seconds(wall), seconds(wall_of_cpu), seconds(cpu)});
    }
  }
  for (const StageLaps* thread : threads) {
    figures.samples += thread->samples_.value.load(std::memory_order_relaxed);
    const std::int64_t longest = thread->slowest_ns_.load(std::memory_order_relaxed);
    if (longest > slowest_ns) {
      slowest_ns = longest;
      slowest = thread->slowest_sample_.load(std::memory_order_relaxed);
    }
  }
  figures.slowest_seconds = seconds(slowest_ns);
  return figures;
}

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/stage_laps.h"

#include <sys/resource.h>
#include <time.h>

namespace stoker::data {
namespace {

// A clock read takes about 25 ns: six per sample are 1 % of 15 us, or of every 31st shorter sample. The stride is odd,
// since periodic work comes at multiples of powers of two: parts of batches, blocks of MixUp.
constexpr std::int64_t kShort = 20'000, kStride = 31;
// Probing a thread takes system calls of about 250 ns. So only every 16th timed sample is probed, and all samples after
// one that took at least a millisecond.
constexpr std::int64_t kProbeEach = 16, kLong = 1'000'000;

std::int64_t ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

LapClock::Probe probe_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return {ns(CLOCK_THREAD_CPUTIME_ID), usage.ru_nvcsw};
}

}  // namespace

const LapClock& system_lap_clock() {
  static constexpr LapClock kSystem{[] { return ns(CLOCK_MONOTONIC); }, probe_thread};
  return kSystem;
}

void StageLaps::begin(std::int64_t sample) {
  end();
  samples_.add(1);
  sample_ = sample;
  if (untimed_ > 0) {
    --untimed_;
  } else {
    timing_ = true;
    probing_ = sample_ns_ >= kLong || timed_++ % kProbeEach == 0;
    sample_ns_ = 0;
    lap(static_cast<int>(Stage::kOpen));
  }
  if (on_enter) {
    on_enter(Stage::kOpen, sample);
  }
}

// A thread without voluntary switches whose CPU time is below the elapsed time was preempted.
void StageLaps::lap(int next) {
  const std::int64_t now = clock_->now_ns();
  const LapClock::Probe found = probing_ ? clock_->probe() : LapClock::Probe{};
  if (stage_ != kNone) {
    const std::int64_t took = now - lap_ns_;
    sample_ns_ += took;
    StageTime& time = times_[static_cast<std::size_t>(stage_)];
    time.wall.add(took * stride_);
    if (probing_) {
      const std::int64_t cpu = found.cpu_ns - lap_probe_.cpu_ns;
      time.probed.add(took);
      time.cpu.add(cpu);
      time.asleep.add(found.waits > lap_probe_.waits ? took - cpu : 0);
    }
  }
  stage_ = next;
  lap_ns_ = now;
  lap_probe_ = found;
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
    std::int64_t wall = 0, probed = 0, cpu = 0, asleep = 0;
    for (const StageLaps* thread : threads) {
      const StageLaps::StageTime& time = thread->times_[stage];
      wall += time.wall.value.load(std::memory_order_relaxed);
      probed += time.probed.value.load(std::memory_order_relaxed);
      cpu += time.cpu.value.load(std::memory_order_relaxed);
      asleep += time.asleep.value.load(std::memory_order_relaxed);
    }
    if (wall > 0) {
      figures.stages.push_back({.name = std::string(kStageNames[stage]),
                                .seconds = seconds(wall),
                                .probed_seconds = seconds(probed),
                                .probed_cpu_seconds = seconds(cpu),
                                .probed_asleep_seconds = seconds(asleep)});
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

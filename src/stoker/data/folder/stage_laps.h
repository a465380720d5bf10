// SPDX-License-Identifier: Apache-2.0
// How long a thread spends in each stage of a sample, at a cost that does not matter: one look at the clock a stage,
// and where samples take microseconds only at every 31st of them. One thread writes, any may read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "stoker/core/source_figures.h"

namespace stoker::data {

enum class Stage : std::uint8_t {
  kOpen,  // finding and opening the file
  kRead,  // its bytes
  kJpeg,  // decoding, by format
  kPng,
  kDecode,   // of any other format
  kResize,   // cropping, scaling, mirroring
  kAugment,  // the operations on it then
  kCollate,  // into the batch: mixing, closing gaps
};
inline constexpr std::array<std::string_view, 8> kStageNames = {"open",   "read",   "JPEG decode", "PNG decode",
                                                                "decode", "resize", "augment",     "collate"};

[[nodiscard]] constexpr std::string_view stage_name(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

// Where a thread's times are read from: the system, or the values of a test.
struct LapClock {
  // Of the calling thread: what it has computed, and how often it has given its core away to wait for something.
  struct Probe {
    std::int64_t cpu_ns = 0, waits = 0;
  };
  std::int64_t (*now_ns)();
  Probe (*probe)();
};
[[nodiscard]] const LapClock& system_lap_clock();

class StageLaps {
 public:
  explicit StageLaps(const LapClock& clock = system_lap_clock()) : clock_(&clock) {}  // which must outlive it

  // A sample begins, in stage kOpen; ends the one before if that was not done.
  void begin(std::int64_t sample);
  // What follows belongs to that stage. Nothing between end() and begin().
  void enter(Stage stage) {
    if (timing_) {
      lap(static_cast<int>(stage));
    }
    if (on_enter) {
      on_enter(stage, sample_);
    }
  }
  // What follows is waiting for other threads, and no work, until the next enter().
  void pause() {
    if (timing_) {
      lap(kNone);
    }
  }
  void end();

  // Called at each enter(), and so within that stage's time: for tests that slow a stage down.
  std::function<void(Stage, std::int64_t sample)> on_enter = {};

 private:
  friend core::SourceFigures sum(std::span<const StageLaps* const>, std::int64_t& slowest);
  static constexpr int kNone = -1;
  // Nanoseconds; written by one thread, so a load and a store suffice.
  struct Counter {
    std::atomic<std::int64_t> value = 0;
    void add(std::int64_t more) {
      value.store(value.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
  };
  struct StageTime {
    Counter wall;                 // of all samples, those that were not timed counted as those that were
    Counter probed, cpu, asleep;  // of samples that were probed
  };
  void lap(int next);

  const LapClock* clock_;
  std::array<StageTime, kStageNames.size()> times_;
  Counter samples_;
  std::atomic<std::int64_t> slowest_ns_ = 0, slowest_sample_ = -1;
  std::int64_t sample_ = -1;
  int stage_ = kNone;  // that is being timed
  bool timing_ = false, probing_ = false;
  std::int64_t stride_ = 1;   // of so many samples one is timed
  std::int64_t untimed_ = 0;  // samples to let pass until then
  std::int64_t timed_ = 0;
  std::int64_t lap_ns_ = 0;  // when the lap began
  LapClock::Probe lap_probe_;
  std::int64_t sample_ns_ = 0;  // of this sample's stages so far
};

// Of all threads; slowest: the sample that took longest, -1 if none was timed. wall_seconds, wait_seconds, threads and
// the slowest one's name are left to the caller.
[[nodiscard]] core::SourceFigures sum(std::span<const StageLaps* const> threads, std::int64_t& slowest);

}  // namespace stoker::data

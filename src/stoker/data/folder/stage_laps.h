// SPDX-License-Identifier: Apache-2.0
// Measures how long a thread spends in each stage of a sample. The cost is negligible: one clock read per stage, and
// only for every 31st sample if samples take microseconds. One thread writes, any thread may read.
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
  kDecode,   // decoding, any other format
  kResize,   // cropping, scaling, mirroring
  kAugment,  // the remaining operations
  kCollate,  // building the batch: mixing, closing gaps
};
inline constexpr std::array<std::string_view, 8> kStageNames = {"open",   "read",   "JPEG decode", "PNG decode",
                                                                "decode", "resize", "augment",     "collate"};

[[nodiscard]] constexpr std::string_view stage_name(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

// Source of a thread's times: the system, or values of a test.
struct LapClock {
  // For the calling thread: CPU time, and the number of voluntary context switches.
  struct Probe {
    std::int64_t cpu_ns = 0, waits = 0;
  };
  std::int64_t (*now_ns)();
  Probe (*probe)();
};
[[nodiscard]] const LapClock& system_lap_clock();

class StageLaps {
 public:
  explicit StageLaps(const LapClock& clock = system_lap_clock()) : clock_(&clock) {}  // clock must outlive this

  // Begins a sample in stage kOpen; ends the previous sample if it is still open.
  void begin(std::int64_t sample);
  // Enters a stage. No effect between end() and begin().
  void enter(Stage stage) {
    if (timing_) {
      lap(static_cast<int>(stage));
    }
    if (on_enter) {
      on_enter(stage, sample_);
    }
  }
  // Until the next enter() the thread waits for other threads; this time belongs to no stage.
  void pause() {
    if (timing_) {
      lap(kNone);
    }
  }
  void end();

  // Called at each enter(), within the time of that stage: for tests that slow a stage down.
  std::function<void(Stage, std::int64_t sample)> on_enter = {};

 private:
  friend core::SourceFigures sum(std::span<const StageLaps* const>, std::int64_t& slowest);
  static constexpr int kNone = -1;
  // Nanoseconds; written by one thread, so a load and a store are enough.
  struct Counter {
    std::atomic<std::int64_t> value = 0;
    void add(std::int64_t more) {
      value.store(value.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
  };
  struct StageTime {
    Counter wall;                 // over all samples; untimed samples are extrapolated from timed ones
    Counter probed, cpu, asleep;  // over probed samples
  };
  void lap(int next);

  const LapClock* clock_;
  std::array<StageTime, kStageNames.size()> times_;
  Counter samples_;
  std::atomic<std::int64_t> slowest_ns_ = 0, slowest_sample_ = -1;
  std::int64_t sample_ = -1;
  int stage_ = kNone;  // being timed
  bool timing_ = false, probing_ = false;
  std::int64_t stride_ = 1;   // one of stride_ samples is timed
  std::int64_t untimed_ = 0;  // samples to skip until then
  std::int64_t timed_ = 0;
  std::int64_t lap_ns_ = 0;  // when the lap began
  LapClock::Probe lap_probe_;
  std::int64_t sample_ns_ = 0;  // over the stages of this sample so far
};

// The sum over all threads. slowest: the sample that took longest, -1 if none was timed. The caller sets wall_seconds,
// wait_seconds, threads and the name of the slowest sample.
[[nodiscard]] core::SourceFigures sum(std::span<const StageLaps* const> threads, std::int64_t& slowest);

}  // namespace stoker::data

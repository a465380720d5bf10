// SPDX-License-Identifier: Apache-2.0
// Measures where the time of the training loop goes: waiting for data, waiting for the device, logging, saving,
// evaluating, and the rest, which is the step. Reports it now and then as an event, and for the whole loop at its end.
// The clock of the loop. Used by run_loop, on its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/core/batch_source.h"
#include "stoker/core/events.h"

namespace stoker::train {

// kDevice: waiting until the device has finished earlier steps; work of the device, not of the host.
enum class LoopWork { kWait, kDevice, kLog, kCheckpoint, kEvaluation };
inline constexpr std::size_t kLoopWorks = 5;

class FeedWatch {
 public:
  // clock: seconds, steady.
  FeedWatch(const core::BatchSource& source, core::EventEmitter& events, std::function<double()> clock = now_s)
      : source_(source), events_(events), clock_(std::move(clock)) {}

  // The loop starts: earlier time is not counted.
  void start();
  // Seconds, on the clock for all times of the loop.
  [[nodiscard]] double now() const { return clock_(); }
  void add(LoopWork work, double seconds) { spent_[static_cast<std::size_t>(work)] += seconds; }
  // Runs a piece of work and adds its time.
  template <typename Piece>
  void spend(LoopWork work, const Piece& piece) {
    const double began = now();
    piece();
    add(work, now() - began);
  }
  // After each step; emits core::Fed if it is due.
  void step_done(std::int64_t step) {
    if (elapsed() - told_.seconds >= core::kFedEach) {
      tell(step);
    }
  }
  // Since start(); source is empty if the source has no figures.
  [[nodiscard]] core::Fed total(std::int64_t step) const;

 private:
  [[nodiscard]] double elapsed() const { return clock_() - started_; }
  void tell(std::int64_t step);

  const core::BatchSource& source_;
  core::EventEmitter& events_;
  std::function<double()> clock_;
  double started_ = clock_();
  core::SourceFigures begun_;                  // the source's figures at start()
  std::array<double, kLoopWorks> spent_ = {};  // seconds since start(), by LoopWork
  core::Fed told_;                             // the total when the last event was emitted
};

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// The clock and the book of the training loop: core::PhaseScope books the time of the loop's thread by phase. Reports
// now and then, as an event, how long the loop waited for data and what else it did, and the same for the whole loop at
// its end. Used by run_loop, on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "stoker/core/batch_source.h"
#include "stoker/core/events.h"
#include "stoker/core/phase_book.h"

namespace stoker::train {

class FeedWatch {
 public:
  // clock: seconds, steady; now_s() if not set.
  FeedWatch(const core::BatchSource& source, core::EventEmitter& events, std::function<double()> clock = {})
      : source_(source), events_(events), book_(std::move(clock)) {}

  // The loop starts: earlier time is not counted, and from now on the time of this thread is booked.
  void start();
  // The loop has ended: later time is not counted.
  void stop() { book_.close(); }
  // Seconds, on the clock for all times of the loop.
  [[nodiscard]] double now() const { return book_.now(); }
  // Seconds since start(), waiting for batches.
  [[nodiscard]] double waited() const { return book_.seconds(core::Phase::kInput) + book_.seconds(core::Phase::kCopy); }
  // After each step and what followed it; emits core::Fed if it is due.
  void step_done(std::int64_t step);
  // Since start(); source is empty if the source has no figures.
  [[nodiscard]] core::Fed total(std::int64_t step) const;
  [[nodiscard]] core::PhaseBook& book() { return book_; }

 private:
  const core::BatchSource& source_;
  core::EventEmitter& events_;
  core::PhaseBook book_;
  core::SourceFigures begun_;  // the source's figures at start()
  core::Fed told_;             // the total when the last event was emitted
};

}  // namespace stoker::train

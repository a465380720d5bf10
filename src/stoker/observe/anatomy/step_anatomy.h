// SPDX-License-Identifier: Apache-2.0
// The anatomy of the steps of a run: reads the book of the loop's thread after each step, keeps quantiles in bounded
// memory, and emits core::Anatomy now and then, core::SlowStep for a step that took much longer than usual, and the
// anatomy of all steps at the end. Always on; made by job. Used on the loop's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/events.h"
#include "stoker/core/phase_book.h"
#include "stoker/device/phase_events.h"
#include "stoker/observe/anatomy/slow_step.h"
#include "stoker/observe/anatomy/thread_usage.h"
#include "stoker/observe/anatomy/time_histogram.h"
#include "stoker/observe/anatomy/usual_step.h"

namespace stoker::observe {

class StepAnatomy {
 public:
  // source: whose figures explain late batches. device: times of the phases on the device; null: a CPU. usage: what the
  // kernel counts for this thread. All outlive this.
  StepAnatomy(core::EventEmitter& events, const core::BatchSource& source, device::PhaseEvents* device = nullptr,
              std::function<ThreadUsage()> usage = thread_usage);

  // After each step and what followed it, or after what followed the end of an epoch (the same step again). book: of
  // this thread, opened when the loop began, settled. seconds_apart: of this time, in phase logging, belong to no step:
  // they are in the sums, not in the quantiles, and no cause is guessed. cause: what made it long, if that is known.
  void step_done(core::PhaseBook& book, std::int64_t step, double seconds_apart = 0, std::string_view cause = {});
  // Emits the last period, and the anatomy of all steps.
  void finish(const core::PhaseBook& book, std::int64_t step);

 private:
  // The books at one moment.
  struct Reading {
    double total = 0;
    std::int64_t steps = 0;
    core::PhasesSpent spent{};
    std::vector<core::MarkSpent> marks;
    device::PhaseEvents::Times device;
    double copied = 0;  // seconds of copies to the device
  };
  [[nodiscard]] Reading read(const core::PhaseBook& book) const;
  void look_for_slow(const PhaseSeconds& phases, double seconds, const ThreadUsage& usage, std::int64_t step,
                     std::string_view cause);
  void add_step(core::PhaseBook& book, const PhaseSeconds& phases, double seconds);
  void tell_period(const core::PhaseBook& book, std::int64_t step);
  [[nodiscard]] core::Anatomy between(const Reading& from, const Reading& to, std::int64_t step) const;

  core::EventEmitter& events_;
  const core::BatchSource& source_;
  device::PhaseEvents* device_;
  std::function<ThreadUsage()> usage_;
  std::array<TimeHistogram, core::kPhases> phases_;  // of all steps
  TimeHistogram steps_, period_;                     // of all steps, and of those since the last event
  double slowest_ = 0, period_slowest_ = 0;
  PhaseSeconds last_{};  // of the book after the last step
  double last_total_ = 0;
  std::int64_t last_step_ = -1;
  ThreadUsage last_usage_;
  core::SourceFigures last_source_;  // read now and then,
  double source_at_ = 0;             // this long after the book began
  UsualStep usual_;
  struct Told {
    double at = -1e9, seconds = 0;  // when, by the book; of that step
  };
  std::array<Told, core::kPhases> told_slow_;  // the last slow step that was told, by phase
  bool told_untimed_ = false;
  Reading begun_, told_;
};

}  // namespace stoker::observe

// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/anatomy/step_anatomy.h"

#include <algorithm>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/base/thousands.h"

namespace stoker::observe {
namespace {

using core::index_of;
using core::Phase;

constexpr std::int64_t kWarmUp = 5;      // steps before one can be slow
constexpr double kSlowEach = 1;          // s between slow steps that are told, per phase
constexpr double kFarSlower = 2;         // ... unless one takes this multiple of the last one told
constexpr double kProbeAll = 5e-3;       // s: steps this long have their CPU time read in each step ...
constexpr std::int64_t kProbeEach = 16;  // ... shorter steps: every 16th; 18 readings of 0.2 us
constexpr std::int64_t kTimeEach = 8;    // every 8th step is timed on the device
constexpr double kSourceEach = 1e-2;     // s between readings of the source's figures: microseconds each

}  // namespace

StepAnatomy::StepAnatomy(core::EventEmitter& events, const core::BatchSource& source, device::PhaseEvents* device,
                         std::function<ThreadUsage()> usage)
    : events_(events), source_(source), device_(device), usage_(std::move(usage)), last_usage_(usage_()) {
  last_source_ = source.figures().value_or(core::SourceFigures{});
  begun_.copied = last_source_.copy_seconds;
  told_ = begun_;
}

void StepAnatomy::step_done(core::PhaseBook& book, std::int64_t step, double seconds_apart, std::string_view cause) {
  PhaseSeconds phases{};
  for (std::size_t i = 0; i < core::kPhases; ++i) {
    phases[i] = book.spent()[i].seconds - last_[i];
    last_[i] = book.spent()[i].seconds;
  }
  double seconds = book.total() - std::exchange(last_total_, book.total());
  const ThreadUsage now = usage_(), usage = now - last_usage_;
  last_usage_ = now;
  if (steps_.count() >= kWarmUp && (seconds_apart <= 0 || !cause.empty())) {
    look_for_slow(phases, seconds, usage, step, cause);
  }
  seconds = std::max(seconds - seconds_apart, 0.0);
  double& logging = phases[index_of(Phase::kLogging)];
  logging = std::max(logging - seconds_apart, 0.0);
  if (std::exchange(last_step_, step) != step) {
    add_step(book, phases, seconds);
  }
  if (book.total() - source_at_ >= kSourceEach) {
    last_source_ = source_.figures().value_or(core::SourceFigures{});
    source_at_ = book.total();
  }
  if (book.total() - told_.total >= core::kFedEach) {
    tell_period(book, step);
  }
}

void StepAnatomy::add_step(core::PhaseBook& book, const PhaseSeconds& phases, double seconds) {
  const double own = seconds - phases[index_of(Phase::kEvaluation)] - phases[index_of(Phase::kCheckpoint)];
  steps_.add(own);
  period_.add(own);
  usual_.add(phases, own);
  slowest_ = std::max(slowest_, own);
  period_slowest_ = std::max(period_slowest_, own);
  for (std::size_t i = 0; i < core::kPhases; ++i) {
    phases_[i].add(phases[i]);
  }
  const std::int64_t count = steps_.count();
  book.probe(usual_.seconds() > kProbeAll || count < kWarmUp || count % kProbeEach == 0);
  if (device_ != nullptr) {
    device_->next_step(count % kTimeEach == 0);
    if (device_->gave_up() && !std::exchange(told_untimed_, true)) {
      events_.emit(core::Finding{
          fmt::format("steps with more than {} changes of phase are not timed on the device, so its times of phases "
                      "are missing or of other steps; with fewer passes per step there are fewer changes",
                      thousands(static_cast<std::int64_t>(device::PhaseEvents::kMostMarks)))});
    }
  }
}

// cause: if it is known; else it is looked for.
void StepAnatomy::look_for_slow(const PhaseSeconds& phases, double seconds, const ThreadUsage& usage, std::int64_t step,
                                std::string_view cause) {
  if (!is_slow(seconds, usual_.seconds())) {
    return;
  }
  const StepFacts facts{.step = step,
                        .seconds = seconds,
                        .usual_seconds = usual_.seconds(),
                        .phases = phases,
                        .usual = usual_.phases(),
                        .usage = usage,
                        .source = core::between(last_source_, source_.figures().value_or(core::SourceFigures{})),
                        .source_seconds = last_total_ - source_at_};
  core::SlowStep slow = explain(facts);
  if (!cause.empty()) {
    slow.cause = cause;
  }
  for (const Phase phase : core::kPhaseOrder) {
    Told& told = told_slow_[index_of(phase)];
    if (core::time_name(phase) == slow.phase &&
        (last_total_ - told.at >= kSlowEach || seconds > kFarSlower * told.seconds)) {
      told = {last_total_, seconds};
      slow.time = clock_s(CLOCK_REALTIME);
      events_.emit(std::move(slow));
      return;
    }
  }
}

StepAnatomy::Reading StepAnatomy::read(const core::PhaseBook& book) const {
  Reading now;
  now.total = book.total();
  now.steps = steps_.count();
  now.spent = book.spent();
  now.marks = book.marks();
  if (device_ != nullptr) {
    now.device = device_->read();
  }
  const auto source = source_.figures();
  now.copied = source ? source->copy_seconds : 0;
  return now;
}

core::Anatomy StepAnatomy::between(const Reading& from, const Reading& to, std::int64_t step) const {
  core::Anatomy all;
  all.time = clock_s(CLOCK_REALTIME);
  all.step = step;
  all.steps = to.steps - from.steps;
  all.seconds = to.total - from.total;
  const std::int64_t timed = to.device.steps - from.device.steps;
  for (const Phase phase : core::kPhaseOrder) {
    const std::size_t i = index_of(phase);
    core::PhaseTime time{.name = std::string(core::time_name(phase)),
                         .seconds = to.spent[i].seconds - from.spent[i].seconds};
    core::PhaseSpent spent = to.spent[i];
    spent.probed_cpu -= from.spent[i].probed_cpu;
    spent.visits -= from.spent[i].visits;
    spent.probed_visits -= from.spent[i].probed_visits;
    time.cpu_seconds = std::min(spent.cpu_seconds(), time.seconds);
    if (phase == Phase::kCopy && to.copied > from.copied) {
      time.device_seconds = to.copied - from.copied;
    } else if (phase != Phase::kCopy && timed > 0) {
      time.device_seconds =
          (to.device.seconds[i] - from.device.seconds[i]) * static_cast<double>(all.steps) / static_cast<double>(timed);
    }
    if (time.seconds > 0 || time.device_seconds > 0) {
      all.phases.push_back(std::move(time));
    }
  }
  for (std::size_t i = 0; i < to.marks.size(); ++i) {
    const double before = i < from.marks.size() ? from.marks[i].seconds : 0;
    if (to.marks[i].seconds > before) {
      all.marks.push_back({.name = to.marks[i].name, .seconds = to.marks[i].seconds - before});
    }
  }
  return all;
}

void StepAnatomy::tell_period(const core::PhaseBook& book, std::int64_t step) {
  Reading now = read(book);
  core::Anatomy all = between(told_, now, step);
  all.p50 = period_.quantile(0.5);
  all.p90 = period_.quantile(0.9);
  all.p99 = period_.quantile(0.99);
  all.slowest = std::exchange(period_slowest_, 0);
  period_.clear();
  told_ = std::move(now);
  events_.emit(std::move(all));
}

void StepAnatomy::finish(const core::PhaseBook& book, std::int64_t step) {
  if (book.total() > told_.total) {
    tell_period(book, step);
  }
  core::Anatomy all = between(begun_, told_, step);
  all.whole = true;
  all.p50 = steps_.quantile(0.5);
  all.p90 = steps_.quantile(0.9);
  all.p99 = steps_.quantile(0.99);
  all.slowest = slowest_;
  for (core::PhaseTime& time : all.phases) {
    for (const Phase phase : core::kPhaseOrder) {
      if (core::time_name(phase) == time.name) {
        time.p50 = phases_[index_of(phase)].quantile(0.5);
        time.p99 = phases_[index_of(phase)].quantile(0.99);
      }
    }
  }
  events_.emit(std::move(all));
}

}  // namespace stoker::observe

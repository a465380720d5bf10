// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/milestones.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/plain_nan.h"
#include "stoker/core/phase.h"
#include "stoker/device/device_fault.h"
#include "stoker/memory/out_of_memory.h"

namespace stoker::train {
namespace {

// The metric named "loss", or else the metric that selects checkpoints.
double loss_of(const std::vector<core::MetricValue>& metrics) {
  const auto loss = std::ranges::find(metrics, "loss", &core::MetricValue::name);
  return (loss == metrics.end() ? metrics.front() : *loss).value;
}

// NaN is not an improvement, and neither is an accuracy with a loss of NaN.
bool is_gain(const core::MetricValue& chosen, double loss, double before) {
  if (std::isnan(chosen.value) || std::isnan(loss)) {
    return false;
  }
  return std::isnan(before) || (chosen.higher_is_better ? chosen.value > before : chosen.value < before);
}

}  // namespace

bool owes_evaluation(const Progress& progress, const Plan& plan, std::int64_t last_step) {
  const bool due = plan.eval_every > 0 ? progress.step % plan.eval_every == 0 : progress.position.step == 0;
  return progress.step > 0 && progress.evaluated_step != progress.step && (due || progress.step == last_step);
}

Milestones::Milestones(const LoopParts& parts, const Plan& plan, std::int64_t last_step, SkipWatch& skips)
    : parts_(parts),
      plan_(plan),
      last_step_(last_step),
      skips_(skips),
      seconds_before_(parts.progress.seconds),
      began_(parts.feed.now()),
      saved_step_(parts.progress.step) {
  parts.step.set_wishes([this] { return own_ends(); });
}

Milestones::~Milestones() { parts_.step.set_wishes({}); }

std::optional<LoopEnd> Milestones::begin() {
  if (parts_.owner.validates() && owes_evaluation(parts_.progress, plan_, last_step_)) {
    return after_step(/*stepped=*/false, /*to_evaluate=*/true, /*to_save=*/true);
  }
  if (!parts_.owner.validates() &&
      parts_.progress.step >= last_step_) {  // no steps are left, and it ended with a loss that is not finite
    require_finite_loss();
  }
  return ends().late ? std::optional(LoopEnd::kTimeUp) : std::nullopt;
}

std::optional<LoopEnd> Milestones::after_step(bool stepped, bool to_evaluate, bool to_save) {
  const bool finished = parts_.progress.step >= last_step_;
  const bool told = stepped && parts_.ranks.size() > 1;  // a step of several ranks carries what each one wishes
  EndWishes now = told ? parts_.step.agreed() : ends();
  AfterEvaluation verdict = AfterEvaluation::kGoOn;
  if (to_evaluate || finished || now.late) {
    skips_.finish();
    verdict = evaluate();
    now = ends();
  }
  std::optional<LoopEnd> end;
  if (verdict == AfterEvaluation::kInterrupted) {
    end = now.stopped ? LoopEnd::kStopped : LoopEnd::kTimeUp;
    if (!now.stopped) {
      parts_.events.emit(core::Finding{
          fmt::format("time= ran out before the validation after step {0} finished; step {0} has no metrics",
                      parts_.progress.step)});
    }
  } else if (verdict == AfterEvaluation::kEnough || finished) {
    end = verdict == AfterEvaluation::kEnough ? LoopEnd::kEarlyStop : LoopEnd::kDone;
  } else if (now.late || now.stopped) {
    end = now.late ? LoopEnd::kTimeUp : LoopEnd::kStopped;
  }
  if (end && end != LoopEnd::kStopped) {
    require_finite_loss();
  }
  if (to_save || end) {
    skips_.finish();
    save("last");
  }
  return end;
}

Milestones::AfterEvaluation Milestones::evaluate() {
  Progress& progress = parts_.progress;
  if (!parts_.owner.validates() ||
      progress.evaluated_step == progress.step) {  // a finished run that is resumed has its metrics
    return AfterEvaluation::kGoOn;
  }
  std::optional<core::PhaseScope> phase(core::Phase::kEvaluation);
  const double began = parts_.feed.now();
  core::Evaluated event{
      .position = progress.position, .step = progress.step, .split = "val", .metrics = parts_.owner.evaluate()};
  event.seconds = parts_.feed.now() - began;
  if (event.metrics.empty()) {
    return AfterEvaluation::kInterrupted;
  }
  const core::MetricValue chosen = event.metrics.front();
  const auto before = std::tuple(progress.evaluated_step, progress.best_metric, progress.evaluations_without_gain);
  newest_loss_ = loss_of(event.metrics);
  event.best = is_gain(chosen, newest_loss_, progress.best_metric);
  evaluated_before_ = std::exchange(progress.evaluated_step, progress.step);
  progress.best_metric = event.best ? chosen.value : progress.best_metric;
  progress.evaluations_without_gain = event.best ? 0 : progress.evaluations_without_gain + 1;
  const bool gain = event.best;
  try {
    parts_.events.emit(std::move(event));
    parts_.owner.show();
    phase.reset();
    if (gain) {
      save("best");
    }
  } catch (...) {  // do not save a best that was not written: a resume evaluates again
    std::tie(progress.evaluated_step, progress.best_metric, progress.evaluations_without_gain) = before;
    throw;
  }
  const bool enough = plan_.early_stop > 0 && progress.evaluations_without_gain >= plan_.early_stop;
  return enough ? AfterEvaluation::kEnough : AfterEvaluation::kGoOn;
}

// A run survives skipped steps, but a run that ends with one has failed. Validation decides: it tells a broken model
// from a bad sample.
void Milestones::require_finite_loss() {
  Progress& progress = parts_.progress;
  skips_.finish();
  const bool validated = parts_.owner.validates() && progress.evaluated_step == progress.step;
  const double loss = validated ? newest_loss_ : progress.loss;
  if (std::isfinite(loss)) {
    return;
  }
  if (validated) {
    progress.evaluated_step = evaluated_before_;  // a resume evaluates again, and ends the same way
  }
  const std::string& fault = skips_.last_fault();
  fail<Error>("train.loop", "the run ended with a loss of {} {} step {}; {}{}{} {}", plain_nan(loss),
              validated ? "on validation after" : "at", progress.step, fault, fault.empty() ? "" : "; ", kFiniteRemedy,
              !fault.empty() ? "these samples"
              : validated    ? "the validation data"
                             : "its samples");
}

void Milestones::save(const char* kind) {
  if (kind == std::string_view("last")) {
    saved_step_ = parts_.progress.step;
  }
  const core::PhaseScope phase(core::Phase::kCheckpoint);
  parts_.owner.save(kind);
}

bool Milestones::time_up() {
  parts_.progress.seconds = seconds_before_ + parts_.feed.now() - began_;
  return plan_.time > 0 && parts_.progress.seconds >= plan_.time;
}

EndWishes Milestones::ends() {
  const EndWishes own = own_ends();
  std::array flags{own.late, own.stopped};
  core::any_rank(parts_.ranks, flags);
  return {.late = flags[0], .stopped = flags[1]};
}

void Milestones::rescue(const std::exception& error) {
  const bool device_failed = device::is_device_fault(error) && !memory::is_out_of_memory(error);
  const bool lost = dynamic_cast<const RankError*>(&error) != nullptr;  // the others may be a step ahead
  if (lost || !whole_step_ || device_failed || parts_.progress.step <= saved_step_) {
    return;
  }
  try {
    skips_.finish();  // a checkpoint never hides a fault
  } catch (const std::exception& fault) {
    parts_.events.emit(core::Finding{fault.what()});
  }
  try {
    const core::PhaseScope phase(core::Phase::kCheckpoint);
    parts_.owner.rescue();
  } catch (const std::exception& second) {
    parts_.events.emit(core::Finding{
        fmt::format("step {} could not be saved before the error: {}", parts_.progress.step, second.what())});
  }
}

}  // namespace stoker::train

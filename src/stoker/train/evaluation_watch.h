// SPDX-License-Identifier: Apache-2.0
// Watches the evaluation of a split, batch by batch: reports its progress and decides whether it may continue. Made by
// job for each evaluation of a run. One thread.
#pragma once

#include <functional>

#include "stoker/base/clock.h"
#include "stoker/core/batch.h"
#include "stoker/core/events.h"
#include "stoker/train/plan.h"

namespace stoker::train {

class EvaluationWatch {
 public:
  // start: step, split and size. give_up: true once the metrics are no longer needed.
  EvaluationWatch(core::EventEmitter& events, core::Evaluating start, std::function<bool()> give_up)
      : events_(events), state_(std::move(start)), give_up_(std::move(give_up)) {}

  // Called by train::evaluate after each batch.
  [[nodiscard]] bool operator()(const core::Batch& batch) {
    state_.done += batch.size();
    if (said_.seconds() >= core::kQuietSeconds) {
      events_.emit(state_);
      said_.restart();
    }
    gave_up_ = give_up_();
    return !gave_up_;
  }
  [[nodiscard]] bool gave_up() const { return gave_up_; }

 private:
  core::EventEmitter& events_;
  core::Evaluating state_;
  std::function<bool()> give_up_;
  Stopwatch said_;
  bool gave_up_ = false;
};

// Whether a run that has taken this long must stop evaluating. The evaluation after time= is up may take a tenth of
// time= and two seconds more: so a short run also has metrics, and a long split does not turn a run of seconds into one
// of minutes.
[[nodiscard]] inline bool too_late_to_evaluate(const Plan& plan, double seconds) {
  return plan.time > 0 && seconds > 1.1 * plan.time + 2;
}

}  // namespace stoker::train

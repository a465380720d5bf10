// SPDX-License-Identifier: Apache-2.0
// Looks on while a split is evaluated, batch by batch: says how far it is, and whether it may go on. Made by job for
// each evaluation of a run. One thread.
#pragma once

#include <functional>

#include "stoker/base/clock.h"
#include "stoker/core/batch.h"
#include "stoker/core/events.h"
#include "stoker/train/plan.h"

namespace stoker::train {

class EvaluationWatch {
 public:
  // start: step, split and size. give_up: true once nobody waits for the figures any more.
  EvaluationWatch(core::EventEmitter& events, core::Evaluating start, std::function<bool()> give_up)
      : events_(events), state_(std::move(start)), give_up_(std::move(give_up)) {}

  // What train::evaluate asks after each batch.
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

// Whether a run that has taken so long may evaluate no more. What is judged when time= is up gets a tenth of it, and
// two seconds, on top: a short run has figures, too, and a long split does not make a run of seconds one of minutes.
[[nodiscard]] inline bool too_late_to_evaluate(const Plan& plan, double seconds) {
  return plan.time > 0 && seconds > 1.1 * plan.time + 2;
}

}  // namespace stoker::train

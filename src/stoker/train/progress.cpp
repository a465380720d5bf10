// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/progress.h"

namespace stoker::train {

void Progress::save_state(core::State& state) const {
  state.numbers["progress.epoch"] = position.epoch;
  state.numbers["progress.epoch_step"] = position.step;
  state.numbers["progress.step"] = step;
  state.numbers["progress.evaluated_step"] = evaluated_step;
  state.numbers["progress.evaluations_without_gain"] = evaluations_without_gain;
  state.numbers["progress.best_metric"] = best_metric;
  state.numbers["progress.loss"] = loss;
  state.numbers["progress.seconds"] = seconds;
}

void Progress::load_state(const core::State& state) {
  position = {state.integer("progress.epoch"), state.integer("progress.epoch_step")};
  step = state.integer("progress.step");
  evaluated_step = state.integer("progress.evaluated_step");
  evaluations_without_gain = state.integer("progress.evaluations_without_gain");
  best_metric = state.real("progress.best_metric");
  loss = state.real("progress.loss");
  seconds = state.real("progress.seconds");
}

}  // namespace stoker::train

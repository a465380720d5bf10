// SPDX-License-Identifier: Apache-2.0
// The progress of a run: what the loop needs, besides tensors, to continue exactly where it stopped.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "stoker/core/batch.h"
#include "stoker/core/stateful.h"

namespace stoker::train {

struct Progress final : core::Stateful {
  core::Position position;           // of the next batch
  std::int64_t step = 0;             // optimizer steps done
  std::int64_t evaluated_step = -1;  // step of the last evaluation, -1: none
  std::int64_t evaluations_without_gain = 0;
  double best_metric = std::numeric_limits<double>::quiet_NaN();  // NaN: not evaluated yet
  double loss = 0;                                                // of the last step that was read
  double seconds = 0;                                             // trained so far, over all sessions of the run

  // The epoch of the last step, counted from 1; 0 before the first step.
  [[nodiscard]] std::int64_t epoch_of_step() const { return position.epoch + (position.step > 0 ? 1 : 0); }

  void save_state(core::State& state) const override;
  void load_state(const core::State& state) override;
};

}  // namespace stoker::train

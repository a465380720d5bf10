// SPDX-License-Identifier: Apache-2.0
// The figures of a step under the names that logs for other tools share: "train/loss", "optimizer/lr",
// "speed/samples_per_second". Used by the TensorBoard, W&B and MLflow sinks. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/core/events.h"

namespace stoker::io {

// float as the device computed it, or double.
using StepValue = std::variant<float, double>;

class StepFigures {
 public:
  StepFigures() = default;
  explicit StepFigures(const std::vector<std::string>& scalars);  // names, as in RunStarted

  // Each step, also those that the log leaves out: the speed is that since the last take().
  void add(const core::StepFinished& step);
  // What is known of the step; unknown values are absent.
  [[nodiscard]] std::vector<std::pair<std::string, StepValue>> take(const core::StepFinished& step);

 private:
  std::vector<std::string> tags_;  // of scalars
  std::int64_t samples_ = 0;
  double seconds_ = 0, waited_ = 0;
};

// "time/forward_share": the share of each phase in the time of a period. Empty for the record of a whole session, whose
// time other records had.
[[nodiscard]] std::vector<std::pair<std::string, double>> phase_shares(const core::Anatomy& period);

}  // namespace stoker::io

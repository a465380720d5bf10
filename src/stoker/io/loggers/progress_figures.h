// SPDX-License-Identifier: Apache-2.0
// The values of the progress line as text: smoothed loss and its trend, speed, share of time waiting for data, time
// left. Used by ProgressLine; independent of the terminal. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "stoker/core/events.h"

namespace stoker::io {

struct ProgressStyle {
  int width = 80;     // columns; parts that do not fit are left out, the least important first
  bool utf8 = false;  // bar and trend as Unicode characters
  bool bar = true;
};

class ProgressFigures {
 public:
  void start(const core::RunStarted& run);
  void step(const core::StepFinished& step);
  // The stage that data waits for, in one or two words; empty: none.
  void fed(std::string late) { late_ = std::move(late); }
  // Whom ranks wait for, in a few words; empty: for nobody.
  void ranks(std::string words) { ranks_ = std::move(words); }
  void evaluating(const core::Evaluating& evaluating);
  void evaluated(const core::Evaluated& evaluated);

  // One line without control characters or a line end; empty before the first step or evaluation.
  [[nodiscard]] std::string line(const ProgressStyle& style) const;

 private:
  [[nodiscard]] std::string bar(bool utf8) const;
  [[nodiscard]] std::string loss(bool utf8) const;
  [[nodiscard]] std::int64_t step_in_epoch() const;  // from 1

  core::RunStarted run_;
  core::StepFinished last_;
  std::optional<float> loss_;   // of the last step
  double fast_ = 0, slow_ = 0;  // exponential means of the finite losses
  double fast_weight_ = 0, slow_weight_ = 0;
  double steps_ = 0, samples_ = 0, seconds_ = 0, waited_ = 0;  // decaying sums over about the last 50 steps
  std::string late_;                                           // the stage that data waits for
  std::string ranks_;                                          // whom ranks wait for
  std::string evaluating_;                                     // progress of an evaluation as text; empty: none
  std::string metric_;                                         // of the last evaluation, as text
};

// "0:07", "12:34", "3:25:45".
[[nodiscard]] std::string duration_text(double seconds);
// "epoch 2: val accuracy 0.7312, loss 0.812 (best so far)".
[[nodiscard]] std::string evaluation_text(const core::Evaluated& evaluated, std::int64_t steps_per_epoch);

}  // namespace stoker::io

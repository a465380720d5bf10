// SPDX-License-Identifier: Apache-2.0
// Reports when steps become several times slower while the kernel preempts this process: other programs use its cores,
// and operators on several threads suffer most. A sink for a run on a CPU, made by job.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "stoker/core/events.h"

namespace stoker::observe {

class SlowSteps final : public core::EventSink {
 public:
  // findings: receives the finding, once. intra_op: threads per operator. switches: number of preemptions of this
  // process so far.
  SlowSteps(core::EventEmitter& findings, std::int64_t intra_op, std::function<std::int64_t()> switches)
      : findings_(findings), intra_op_(intra_op), switches_(std::move(switches)), seen_(switches_()) {}

  void on(const core::Event& event) override;

 private:
  // Measurements of the window between two core::Fed.
  struct Pace {
    double step_seconds = 0;  // per step
    double switches = 0;      // per second
  };
  void look(const Pace& now);

  core::EventEmitter& findings_;
  std::int64_t intra_op_;
  std::function<std::int64_t()> switches_;
  std::int64_t seen_;      // switches at the end of the last window
  std::int64_t step_ = 0;  // at the end of the last window
  Pace best_;              // the fastest so far; 0 seconds: none yet
  int slow_looks_ = 0;     // consecutive
};

}  // namespace stoker::observe

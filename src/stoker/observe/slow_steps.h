// SPDX-License-Identifier: Apache-2.0
// Says so when steps become several times slower while the kernel takes cores away from this process: other programs
// use them, and operators on several threads suffer most. A sink of a run on a CPU, made by job.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "stoker/core/events.h"

namespace stoker::observe {

class SlowSteps final : public core::EventSink {
 public:
  // findings: where it says so, once. intra_op: threads of an operator. switches: how often the kernel has taken a core
  // from a thread of this process so far.
  SlowSteps(core::EventEmitter& findings, std::int64_t intra_op, std::function<std::int64_t()> switches)
      : findings_(findings), intra_op_(intra_op), switches_(std::move(switches)), seen_(switches_()) {}

  void on(const core::Event& event) override;

 private:
  // Of a stretch of time between two core::Fed.
  struct Pace {
    double step_seconds = 0;  // of a step
    double switches = 0;      // a second
  };
  void look(const Pace& now);

  core::EventEmitter& findings_;
  std::int64_t intra_op_;
  std::function<std::int64_t()> switches_;
  std::int64_t seen_;      // switches at the last look
  std::int64_t step_ = 0;  // at the last look
  Pace best_;              // the fastest so far; no step: none yet
  int slow_looks_ = 0;     // one after the other
};

}  // namespace stoker::observe

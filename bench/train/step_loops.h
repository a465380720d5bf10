// SPDX-License-Identifier: Apache-2.0
// The two loops that step_bench compares: Stoker's, with a run's logging on, and a bare one that only trains. Each has
// a case of its own. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "step_case.h"

namespace stoker::bench {

class Loop {
 public:
  virtual ~Loop() = default;
  // Takes steps. Calls `before`, if set, ahead of each step, and stops if it returns false.
  virtual void run(std::int64_t steps, const std::function<bool()>& before = {}) = 0;
};

// zero_grad(set_to_none), forward, mean loss, backward, one call of the fused optimizer kernel for all parameters; with
// autocast around the forward pass if the case sets it. Uses only ATen, like a program without Stoker.
[[nodiscard]] std::unique_ptr<Loop> make_bare_loop(StepCase& made);

// train::run_loop on a source that returns the case's batch again and again: train::Step, ScalarRing, an EventBus with
// metrics.csv, metrics.jsonl, TensorBoard and a progress line (into nothing), in a temporary folder. anatomy: read at
// each run(), whether it books the time of phases, as a run always does; null: yes.
[[nodiscard]] std::unique_ptr<Loop> make_stoker_loop(StepCase& made, const bool* anatomy = nullptr);

}  // namespace stoker::bench

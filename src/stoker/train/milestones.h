// SPDX-License-Identifier: Apache-2.0
// What happens between the steps of the loop: evaluations, checkpoints, the end of the run, and the checkpoint before
// an error. The part of run_loop that is not a step. One thread.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "stoker/train/loop.h"
#include "stoker/train/skip_watch.h"

namespace stoker::train {

class Milestones {
 public:
  Milestones(const LoopParts& parts, const Plan& plan, std::int64_t last_step, SkipWatch& skips);

  ~Milestones();
  Milestones(const Milestones&) = delete;
  Milestones& operator=(const Milestones&) = delete;

  // Before the first step: repeats an interrupted evaluation. Returns an end if the time is up already.
  [[nodiscard]] std::optional<LoopEnd> begin();
  // After a step or, without one, the end of an epoch; returns the end of the run if it is reached. Error if a run ends
  // with a loss that is not finite, before it is saved.
  [[nodiscard]] std::optional<LoopEnd> after_step(bool stepped, bool to_evaluate, bool to_save);

  // From here on parameters belong to no step: nothing is saved any more.
  void give_up_state() { whole_step_ = false; }
  // Before an error leaves the loop: saves the steps since the last checkpoint through the owner. Not if the device has
  // failed, since nothing can be copied from it. Errors in here become a Finding.
  void rescue(const std::exception& error);

 private:
  enum class AfterEvaluation { kGoOn, kEnough, kInterrupted };

  // Evaluates, remembers the best metric, saves it. kEnough if early stopping ends the run.
  [[nodiscard]] AfterEvaluation evaluate();
  void save(const char* kind);
  [[nodiscard]] bool time_up();
  // Whether the run's time is up and whether it must stop. If one rank says so, all ranks end after the same step.
  [[nodiscard]] EndWishes ends();
  [[nodiscard]] EndWishes own_ends() { return {.late = time_up(), .stopped = parts_.owner.stop_requested()}; }
  void require_finite_loss();

  const LoopParts& parts_;
  const Plan& plan_;
  std::int64_t last_step_;
  SkipWatch& skips_;
  double seconds_before_, began_;       // of the run before this session; on the loop's clock
  std::int64_t saved_step_;             // of the newest attempt at a checkpoint "last"
  std::int64_t evaluated_before_ = -1;  // the evaluation before the newest one
  double newest_loss_ = 0;              // of the newest one in this session; 0: an earlier session continued after it
  bool whole_step_ = true;
};

}  // namespace stoker::train

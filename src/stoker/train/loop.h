// SPDX-License-Identifier: Apache-2.0
// The training loop: batches in, steps, events out. It fits on one page and never prints. Evaluation, checkpoints and
// the rest of a run belong to its owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/batch_source.h"
#include "stoker/core/communicator.h"
#include "stoker/core/events.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/train/feed_watch.h"
#include "stoker/train/plan.h"
#include "stoker/train/progress.h"
#include "stoker/train/recovery.h"
#include "stoker/train/step.h"

namespace stoker::train {

// Implemented by the owner of the run: job::Run, and tests/support/toy_owner.h. Called on the loop's thread.
class LoopOwner {
 public:
  virtual ~LoopOwner() = default;
  // Called once before each step, 0, 1, ...: returns its learning rate.
  [[nodiscard]] virtual double begin_step(std::int64_t step) = 0;
  // Between the halves of each step, when it has all its gradients, and after it: for records of memory and profiles.
  virtual void computed(const core::Batch& batch) { (void)batch; }
  // Returns the seconds that the second one took for what belongs to no step, such as writing a profile.
  virtual double step_done() { return 0; }
  // After each step and what followed it, and after what followed an epoch's end (the same step again): the time of
  // this thread since the loop began.
  virtual void booked(core::PhaseBook& book, std::int64_t step) { (void)book, (void)step; }
  // Whether there is a validation split; evaluate() is only called if there is one.
  [[nodiscard]] virtual bool validates() const = 0;
  // Metrics on the validation split. The first one selects the best checkpoint. Empty: interrupted.
  [[nodiscard]] virtual std::vector<core::MetricValue> evaluate() = 0;
  // After each evaluation: writes examples of the model's outputs.
  virtual void show() {}
  // Writes the checkpoint "last" or "best".
  virtual void save(const char* kind) = 0;
  // Before an error leaves the loop: writes "last" if its values are finite.
  virtual void rescue() {}
  // Name of the sample with a dataset index, for messages.
  [[nodiscard]] virtual std::string sample_name(std::int64_t index) const = 0;
  // Held by tensors; -1 if unknown.
  [[nodiscard]] virtual std::int64_t memory_bytes() { return -1; }
  // Once true, the loop finishes the step, saves and returns.
  [[nodiscard]] virtual bool stop_requested() const = 0;
};

struct LoopParts {
  core::BatchSource& source;
  Step& step;
  Progress& progress;
  Recovery& recovery;
  device::ScalarRing& scalars;
  core::EventEmitter& events;
  FeedWatch& feed;
  core::Communicator& ranks;
  LoopOwner& owner;
};

enum class LoopEnd { kDone, kStopped, kEarlyStop, kTimeUp };

// Trains until last_step. First repeats an evaluation that was interrupted at progress.step. Throws Error if more than
// plan.skip_limit steps in a row were not finite, with the samples of the last one, and if the run ends with a loss
// that is not finite: on the validation split, or at the last step without one. What runs out of memory is tried again
// by parts.recovery; other errors of source, step and evaluation pass through. Before an error leaves, owner.rescue()
// saves the steps since the last checkpoint. An interrupted evaluation leaves no trace: the run can continue with it.
// All times use the clock of parts.feed.
LoopEnd run_loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step);

// Whether a run that continues from here was stopped before the evaluation of this step finished.
[[nodiscard]] bool owes_evaluation(const Progress& progress, const Plan& plan, std::int64_t last_step);

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// The training loop: batches in, steps, events out; evaluation and checkpoints through the two functions it is handed.
// It stands on one page and never prints, formats or waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "stoker/core/batch_source.h"
#include "stoker/core/events.h"
#include "stoker/device/scalar_ring.h"
#include "stoker/train/feed_watch.h"
#include "stoker/train/plan.h"
#include "stoker/train/progress.h"
#include "stoker/train/step.h"

namespace stoker::train {

struct LoopParts {
  core::BatchSource& source;
  Step& step;
  Progress& progress;
  device::ScalarRing& scalars;
  core::EventEmitter& events;
  FeedWatch& feed;
  std::function<double(std::int64_t step)> lr;               // learning rate of step 0, 1, ...
  std::function<std::vector<core::MetricValue>()> evaluate;  // on validation, no metrics: interrupted; may be empty
  std::function<void()> show;                                // after each evaluation, what it looks like; may be empty
  std::function<void(const char* kind)> save;                // writes checkpoint "last" or "best"
  std::function<std::string(std::int64_t index)> sample_name;  // of a dataset index, for messages
  std::function<std::int64_t()> memory_bytes;                  // held by tensors, -1 if unknown
  const std::atomic<bool>& stop;                               // set by a signal: finish the step, save, return
  std::function<void()> rescue = {};  // writes "last" before an error leaves the loop, if it is finite; may be empty
};

enum class LoopEnd { kDone, kStopped, kEarlyStop, kTimeUp };

// Trains until last_step, after the evaluation that was interrupted at progress.step, if one was. Error when more than
// plan.skip_limit steps in a row were not finite, naming the samples of the last one, and where the run ends with a
// loss that is not finite: on validation, or without one at the last step. Errors of source, step and evaluation pass
// through. Before an error leaves, the steps since the last checkpoint go to parts.rescue. An evaluation that is
// interrupted leaves no trace: the run can go on with it. All times are taken from the clock of parts.feed.
LoopEnd run_loop(const LoopParts& parts, const Plan& plan, std::int64_t last_step);

// Whether a run that goes on from here was stopped before it had the figures of this step.
[[nodiscard]] bool owes_evaluation(const Progress& progress, const Plan& plan, std::int64_t last_step);

}  // namespace stoker::train

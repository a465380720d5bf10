// SPDX-License-Identifier: Apache-2.0
// Decides plan values by short timed trials: measure() replaces the performance values that nobody set by the fastest
// ones on this machine. Called by job between resolve() and step 1; nothing changes later. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "stoker/core/load_time.h"
#include "stoker/train/options.h"
#include "stoker/train/plan.h"
#include "stoker/train/resolve.h"

namespace stoker::train {

// A way to compute a step, with the plan's names.
struct Candidate {
  std::string precision, layout;
  int intra_op = 1;
};

// Timed trials on the real model and data; they leave no trace in either.
class Trials {
 public:
  virtual ~Trials() = default;
  // Whether a trial can decide which layout is faster: there are convolutions, and a trial's steps equal the run's
  // steps.
  virtual bool layouts_can_be_tried() = 0;
  // Seconds per sample of a training step, for each candidate; candidates take turns. On a CPU a step is forward and
  // backward, on a GPU it is the whole step.
  virtual std::vector<double> step_seconds_per_sample(const std::vector<Candidate>& candidates) = 0;
  virtual core::LoadTime load_time_per_sample() = 0;
};

// A faster candidate must win by this share; otherwise the simpler one is taken, so that noise does not decide.
inline constexpr double kTie = 0.05;
// More threads per operator must win by this share: if another program uses one of their cores, a step on several
// threads takes up to ten times as long as on one.
inline constexpr double kWorthThreads = 0.15;
// Seconds. A shorter step runs on one thread: all of its operators fit into one time slice of Linux's scheduler (3 ms
// from eight cores on: kernel/sched/fair.c, sysctl_sched_base_slice). One operator that waits for the time slice of
// another program costs more than threads gain in the whole step.
inline constexpr double kSmallStep = 3e-3;

// Sets precision, layout, threads and intra_op, unless the user set them.
void measure(Plan& plan, const Options& options, const Facts& facts, Trials& trials);

}  // namespace stoker::train

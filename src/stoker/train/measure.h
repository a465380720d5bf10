// SPDX-License-Identifier: Apache-2.0
// What short timed trials decide: measure() replaces the performance values of a plan that nobody asked for by what is
// fastest here. Called by job between resolve() and step 1; nothing changes later. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "stoker/core/load_time.h"
#include "stoker/train/options.h"
#include "stoker/train/plan.h"
#include "stoker/train/resolve.h"

namespace stoker::train {

// A way to compute a step, in the plan's words.
struct Candidate {
  std::string precision, layout;
  int intra_op = 1;
};

// Timed trials on the real model and data; they leave no trace in either.
class Trials {
 public:
  virtual ~Trials() = default;
  // Whether a trial would tell which layout suits the run: there are convolutions, and a trial's steps are the run's.
  virtual bool layouts_can_be_tried() = 0;
  // Seconds for one sample's share of a training step of each; the candidates take turns. On a CPU a step is forward
  // and backward, on a GPU it is the whole step.
  virtual std::vector<double> step_seconds_per_sample(const std::vector<Candidate>& candidates) = 0;
  virtual core::LoadTime load_time_per_sample() = 0;
};

// A faster candidate must win by this share; ties go to the simpler one, so that noise does not choose.
inline constexpr double kTie = 0.05;
// More threads of an operator must win by this share: where another program takes one of their cores, a step on several
// threads takes up to ten times as long as on one.
inline constexpr double kWorthThreads = 0.15;
// Seconds. A shorter step runs on one thread: all of its operators fit into one time slice of Linux's scheduler (3 ms
// from eight cores on: kernel/sched/fair.c, sysctl_sched_base_slice), and one operator that waits for a slice of
// another program costs more than threads gain in the whole step.
inline constexpr double kSmallStep = 3e-3;

// precision, layout, threads and intra_op, as far as nobody asked for them.
void measure(Plan& plan, const Options& options, const Facts& facts, Trials& trials);

}  // namespace stoker::train

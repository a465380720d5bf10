// SPDX-License-Identifier: Apache-2.0
// Short timed trials on the real model and data, from which measure() chooses precision, layout and threads before step
// 1. On a CPU a trial's step is forward and backward on as many samples as it can afford; on a GPU, which reaches its
// speed only on whole batches, it is the whole step. Afterwards weights and statistics are the same, byte by byte, and
// each step seeds the generators. Nothing is loaded or timed before the first call. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/core/batch.h"
#include "stoker/optim/optimizer.h"
#include "stoker/train/measure.h"

namespace stoker::job {

struct Setup;

class StepTrials final : public train::Trials {
 public:
  // slow: called once if trials take long enough for a message. whole_steps: with commit, as on a GPU.
  explicit StepTrials(Setup& setup, std::function<void()> slow = {});
  StepTrials(Setup& setup, std::function<void()> slow, bool whole_steps)
      : setup_(setup), slow_(std::move(slow)), whole_steps_(whole_steps) {}

  // True if the whole microbatch is fast enough to be timed: with few samples the fixed cost of a step dominates, and
  // it differs between the two layouts in another way than the cost per sample.
  bool layouts_can_be_tried() override;
  std::vector<double> step_seconds_per_sample(const std::vector<train::Candidate>& candidates) override;
  core::LoadTime load_time_per_sample() override;

 private:
  double time_step(const core::Batch& batch, const std::string& precision);
  double time_candidate(const core::Batch& batch, const train::Candidate& candidate);
  // Seconds of a step on this many samples, after kernels are built for them.
  double usual_seconds(std::int64_t samples);
  // Loads a batch, finds how many of its samples a trial can afford, and makes the objects of a step.
  void choose_samples();
  // Saves the weights on the host, and restores them.
  void keep_weights();
  void restore_weights();

  Setup& setup_;
  std::function<void()> slow_;
  bool whole_steps_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<at::Tensor> weights_;  // before whole steps
  Stopwatch since_;
  std::optional<core::Batch> batch_;
  std::int64_t samples_ = 0;  // of a trial's batch
  double seconds_ = 0;        // of a step on them
};

}  // namespace stoker::job

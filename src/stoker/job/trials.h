// SPDX-License-Identifier: Apache-2.0
// Short timed trials on the real model and data, from which measure() chooses precision, layout and threads before
// step 1. On a CPU a trial's step is forward and backward on as many samples as it can afford; on a GPU, which shows
// its speed on whole batches only, it is the whole step. Weights and statistics are afterwards what they were, byte by
// byte, and generators are seeded by each step. Nothing is loaded or timed before the first question. One thread at a
// time.
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
  // slow: told once, if trials take longer than people like to look at nothing. whole_steps: with commit, as on a GPU.
  explicit StepTrials(Setup& setup, std::function<void()> slow = {});
  StepTrials(Setup& setup, std::function<void()> slow, bool whole_steps)
      : setup_(setup), slow_(std::move(slow)), whole_steps_(whole_steps) {}

  // True where the whole microbatch is quick enough to be timed: with few samples a step's own costs decide, and they
  // are others in the two layouts than what samples cost.
  bool layouts_can_be_tried() override;
  std::vector<double> step_seconds_per_sample(const std::vector<train::Candidate>& candidates) override;
  core::LoadTime load_time_per_sample() override;

 private:
  double time_step(const core::Batch& batch, const std::string& precision);
  double time_candidate(const core::Batch& batch, const train::Candidate& candidate);
  // Seconds of a step on so many samples, once kernels are built for them.
  double usual_seconds(std::int64_t samples);
  // Loads a batch, finds how many of its samples a trial can afford, and makes what a step needs.
  void choose_samples();
  // Keeps the weights on the host, and puts them back.
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

// SPDX-License-Identifier: Apache-2.0
// Short timed trials on the real model and data, from which measure() chooses precision, layout and threads before
// step 1.
// They compute and never commit: weights and statistics stay as they were, and generators are seeded anew by each step.
// Nothing is loaded or timed before the first question. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/core/batch.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

struct Setup;

class StepTrials final : public train::Trials {
 public:
  // slow: told once, if trials take longer than people like to look at nothing.
  explicit StepTrials(Setup& setup, std::function<void()> slow = {}) : setup_(setup), slow_(std::move(slow)) {}

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
  // Loads a batch and finds how many of its samples a trial can afford.
  void choose_samples();

  Setup& setup_;
  std::function<void()> slow_;
  Stopwatch since_;
  std::optional<core::Batch> batch_;
  std::int64_t samples_ = 0;  // of a trial's batch
  double seconds_ = 0;        // of a step on them
};

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// Short timed trials on the real model and data, from which measure() chooses precision and threads before step 1.
// They compute and never commit: weights and statistics stay as they were, and generators are seeded anew by each step.
// Nothing is loaded or timed before the first question. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "stoker/core/batch.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

struct Setup;

class StepTrials final : public train::Trials {
 public:
  explicit StepTrials(Setup& setup) : setup_(setup) {}

  double step_seconds_per_sample(const std::string& precision, int intra_op) override;
  double load_seconds_per_sample() override;

 private:
  double time_step(const core::Batch& batch, const std::string& precision);
  // Loads a batch and finds how many of its samples make a trial long enough to time.
  void choose_samples();

  Setup& setup_;
  std::optional<core::Batch> batch_;
  std::int64_t samples_ = 0;  // of a trial's batch
  std::map<std::pair<std::string, int>, double> known_;
};

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run exchange in each step, always in this order: before the passes, that all take the same step,
// and the normalisers; with backward, the gradients; after the passes, losses, whether one ran out of memory, and
// running statistics. Used by train::Step with several ranks; one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/core/loss_terms.h"
#include "stoker/core/trainable.h"
#include "stoker/parallel/gradient_buckets.h"

namespace stoker::train {

// What a rank asks of all, with each step.
struct EndWishes {
  bool late = false;     // the run's time is up
  bool stopped = false;  // a signal came
};

class RankExchange {
 public:
  // ranks and model outlive it.
  RankExchange(core::Communicator& ranks, const core::Trainable& model);

  // Before the passes over this rank's part of batch number `number`, and before each new try. normalisers become sums
  // over ranks. limit: samples of a pass at most on this rank, 0: all; returns the smallest of all ranks. Error if
  // ranks take different steps, or have other models: then nothing was summed.
  [[nodiscard]] std::int64_t begin(std::int64_t number, std::int64_t limit, core::Normalisers& normalisers);
  // Before the last backward pass: its gradients are summed beside it.
  void last_pass() { gradients_.begin(); }
  // After the passes; failed: they ran out of memory here. Gradients and loss_parts become sums over ranks, running
  // statistics their means, counts among them the largest, and a wish of one rank one of all. False if a rank failed:
  // then all drop the step, and no statistic has changed. loss_parts: float64 [terms]; undefined if this rank had no
  // samples.
  [[nodiscard]] bool finish(bool failed, at::Tensor& loss_parts, EndWishes& wishes);

 private:
  void average_statistics();

  core::Communicator& ranks_;
  parallel::GradientBuckets gradients_;
  std::vector<at::Tensor> norm_;  // running statistics of the model
  std::size_t terms_;
  std::uint64_t hash_;  // of what a step exchanges
  at::Device device_;
};

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// Computes forward and backward of the run's own model on the run's first batch, with a given number of samples per
// pass, and says how much memory and time that takes. Weights, statistics, generators and the memory limit are the same
// afterwards; the optimizer's state is counted, not made. Used by job::choose_passes(), choose_recomputation() and
// choose_pipeline_cut(). One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/job/memory_advice.h"
#include "stoker/memory/batch_finder.h"
#include "stoker/memory/measure_segments.h"
#include "stoker/memory/recompute_choice.h"
#include "stoker/optim/optimizer.h"
#include "stoker/precision/process_switches.h"

namespace stoker::job {

struct Setup;

class StepProbes final : public memory::Prober {
 public:
  // whole_batches: a probe's samples are a batch of their own, in one pass; else they are one of several passes over
  // the plan's batch, whose gradients add up. Loads the first batch.
  StepProbes(const Setup& setup, bool whole_batches);
  ~StepProbes() override;
  StepProbes(const StepProbes&) = delete;
  StepProbes& operator=(const StepProbes&) = delete;

  // A step of at most two passes, first for its memory, then for its time: the best of several if it is short.
  memory::Probe probe(std::int64_t samples) override;
  // What later probes recompute; at first what the plan says.
  void recompute(memory::RecomputeChoice choice) { recompute_ = std::move(choice); }
  // What recomputing each segment would save and cost in a pass of this many samples, at most a batch: the shortest
  // times of several forward passes. Throws if memory runs out.
  [[nodiscard]] std::vector<memory::SegmentCost> segment_costs(std::int64_t samples);

  // Samples of the plan's batch on this rank.
  [[nodiscard]] std::int64_t batch() const { return batch_.size(); }
  // Bytes that a pass may need beyond held(); -1: not known.
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  // Bytes of weights, the batch, and what the run will make before its first step; -1: not known.
  [[nodiscard]] std::int64_t held() const { return held_; }

 private:
  // Seconds of the step, passes of at most `samples`.
  double compute(const core::Batch& batch, std::int64_t samples);

  const Setup& setup_;
  bool whole_batches_;
  memory::RecomputeChoice recompute_;
  precision::ProcessSwitches switches_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  core::Batch batch_;
  std::int64_t later_ = 0;  // bytes that the run will hold and that do not exist yet
  std::int64_t held_ = -1, limit_ = -1;
};

// The first `samples` rows of the batch; from its first row again where it has fewer.
[[nodiscard]] core::Batch rows_repeated(const core::Batch& batch, std::int64_t samples);

}  // namespace stoker::job

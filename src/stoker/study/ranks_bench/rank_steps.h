// SPDX-License-Identifier: Apache-2.0
// What each rank of `stoker bench ranks` does: sums of several sizes, and steps of a model. A collective call on all
// ranks: rank 0 decides how often, by its clock and its stop. One thread per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/core/communicator.h"
#include "stoker/core/trainable.h"
#include "stoker/optim/optimizer.h"
#include "stoker/study/ranks_bench/forecast.h"

namespace stoker::study {

// The bytes of timed sums: from 8 B, where only the latency counts, to 16 MiB.
inline constexpr std::int64_t kSumBytes[] = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};

struct Effort {
  c10::Device device = c10::kCPU;                     // of this rank: what is timed ends when it has nothing left to do
  double seconds = 1;                                 // of a measurement: a size of sums, or steps of a model
  std::function<bool()> stop = [] { return false; };  // asked on rank 0 between measurements
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// The median time of a sum of each size. Fewer than kSumBytes if it was stopped.
[[nodiscard]] std::vector<TimedSum> time_sums(core::Communicator& ranks, const Effort& effort);

// The median time of an exchange of a few numbers, as it ends each step. 0 if it was stopped.
[[nodiscard]] double time_exchange(core::Communicator& ranks, const Effort& effort);

// A model with what a step of it needs. Gradients are summed as in a run.
struct StepCase {
  std::unique_ptr<core::Trainable> model;
  core::Batch batch;  // of a rank
  optim::OptimizerOptions optimizer = {};
  double lr = 0;
};

// The median seconds of a step on rank 0. 0 if it was stopped.
[[nodiscard]] double time_steps(core::Communicator& ranks, StepCase& made, const Effort& effort);
// The course of the step that has the median time, on a RecordingRank. seconds is 0 if it was stopped.
[[nodiscard]] Course record_steps(StepCase& made, const Effort& effort);

}  // namespace stoker::study

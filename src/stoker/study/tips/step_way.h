// SPDX-License-Identifier: Apache-2.0
// Whole steps and evaluations as ways of a tip: the engine's by default, or with one habit changed back. Used by the
// rows of the tips table. One thread at a time.
#pragma once

#include <functional>

#include "stoker/study/tips/bench_model.h"
#include "stoker/study/tips/tip.h"
#include "stoker/train/step.h"

namespace stoker::study {

struct StepHabits {
  BenchOptions model = {};  // device, dtype and batch are the tip_case's
  train::StepOptions step = {};
  std::int64_t microbatch = 0;  // samples per forward pass; 0: the batch
  std::int64_t batches = 1;     // size of the batch, as a multiple of the model's
  std::int64_t steps = 1;       // steps per call, each on another part of the batch
  double lr_factor = 1;
  bool optimizer_by_parameter = false;  // instead of the fused kernels
  std::function<void()> before = {};    // called before each step; its time counts
  std::function<void()> after = {};     // called after each step, also if it throws
  std::function<void()> finish = {};    // at the end of a block of calls
};

// train::Step, used as in the training loop.
[[nodiscard]] Way engine_way(const TipCase& tip_case, const StepHabits& habits);

// The same step on given batches on the CPU.
struct StepOnBatches {
  std::function<void(core::Batch)> step;
  std::function<std::vector<core::NamedTensor>()> outcome;
};
[[nodiscard]] StepOnBatches engine_step(const TipCase& tip_case);

// Only forward, backward and the fused optimizer; afterwards gradients are dropped, or kept and zeroed.
[[nodiscard]] Way bare_way(const TipCase& tip_case, bool keep_gradients);

// An evaluation of the batch: as in train::evaluate, or with a forward pass that records an unused graph.
[[nodiscard]] Way evaluation_way(const TipCase& tip_case, bool record_graph);

// Waits for the device, for Side::finish; empty on a CPU.
[[nodiscard]] std::function<void()> wait_for(c10::Device device);

}  // namespace stoker::study

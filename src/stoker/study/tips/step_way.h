// SPDX-License-Identifier: Apache-2.0
// Whole steps and evaluations as ways of a tip: the engine's own by default, with one habit put back where asked. Used
// by the rows of the tips table. One thread at a time.
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
  std::int64_t batches = 1;     // the batch is so many times the model's
  std::int64_t steps = 1;       // a call takes so many, each on another part of the batch
  double lr_factor = 1;
  bool optimizer_by_parameter = false;  // instead of the fused kernels
  std::function<void()> before = {};    // called before each step: what it sets up counts
  std::function<void()> after = {};     // ... and after it, also where it throws
  std::function<void()> finish = {};    // at the end of a block of calls
};

// train::Step, as the loop drives it.
[[nodiscard]] Way engine_way(const TipCase& tip_case, const StepHabits& habits);

// The same step on batches that come from elsewhere, on the CPU.
struct StepOnBatches {
  std::function<void(core::Batch)> step;
  std::function<std::vector<core::NamedTensor>()> outcome;
};
[[nodiscard]] StepOnBatches engine_step(const TipCase& tip_case);

// Forward, backward and the fused optimizer, and nothing else; after it gradients are dropped, or kept and zeroed.
[[nodiscard]] Way bare_way(const TipCase& tip_case, bool keep_gradients);

// An evaluation of the batch: as train::evaluate does it, or by a forward pass that records a graph nobody asks for.
[[nodiscard]] Way evaluation_way(const TipCase& tip_case, bool record_graph);

// What waits for the device, for Side::finish; empty on a CPU.
[[nodiscard]] std::function<void()> wait_for(c10::Device device);

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// The models that this room's tables train, each with a made-up batch of the dtypes and ranges of real data, its loss
// and the optimizer that it is usually trained with. Used by tips. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/ops/attention.h"
#include "stoker/optim/optimizer.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::study {

// The engine's way by default; what differs is there to be measured.
struct BenchOptions {
  c10::Device device = c10::kCPU;
  at::ScalarType dtype = at::kFloat;  // of the weights: kFloat, or kDouble for tests
  std::int64_t batch = 0;             // samples; 0: those of BenchModelInfo
  bool channels_last = true;
  bool conv_bias = false;  // in front of a batch norm
  ops::AttentionKind attention = ops::AttentionKind::kFused;
  std::uint64_t seed = 0;  // of the weights
};

struct BenchModel {
  std::unique_ptr<tasks::NetworkTrainable> model;
  core::Batch batch;
  optim::OptimizerOptions optimizer = {};
  double lr = 0;
};

struct BenchModelInfo {
  std::string name;
  std::string text;        // what it is and how large, for people
  std::int64_t batch = 0;  // samples
  bool convolutions = false, batch_norm = false, attention = false;
  bool listed = true;  // false: for the rows of accumulation alone
};

// In the order in which tables show them; sized so that a step takes 0.2 ms (the first) to 350 ms (resnet50) on two
// cores.
[[nodiscard]] const std::vector<BenchModelInfo>& bench_models();

// The one of that name; ConfigError with the nearest for an unknown one.
[[nodiscard]] const BenchModelInfo& bench_model(const std::string& name);

// Equal names and options give equal weights and data. ConfigError as bench_model().
[[nodiscard]] BenchModel make_bench_model(const std::string& name, const BenchOptions& options);

}  // namespace stoker::study

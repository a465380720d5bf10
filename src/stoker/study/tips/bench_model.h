// SPDX-License-Identifier: Apache-2.0
// The models of this room's tables, each with a synthetic batch (dtypes and ranges as in real data), its loss and its
// usual optimizer. Used by tips. One thread at a time.
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

// The defaults are the engine's; other values are for comparison.
struct BenchOptions {
  c10::Device device = c10::kCPU;
  at::ScalarType dtype = at::kFloat;  // dtype of the weights: kFloat, or kDouble for tests
  std::int64_t batch = 0;             // samples; 0: as in BenchModelInfo
  bool channels_last = true;
  bool conv_bias = false;  // of convolutions before a batch norm
  ops::AttentionKind attention = ops::AttentionKind::kFused;
  std::int64_t loss_chunk = 0;  // of gpt-50k: tokens whose logits exist at a time; 0: all
  std::uint64_t seed = 0;       // of the weights
};

struct BenchModel {
  std::unique_ptr<tasks::NetworkTrainable> model;
  core::Batch batch;
  optim::OptimizerOptions optimizer = {};
  double lr = 0;
};

struct BenchModelInfo {
  std::string name;
  std::string text;        // kind and size, for people
  std::int64_t batch = 0;  // samples
  bool convolutions = false, batch_norm = false, attention = false;
  bool listed = true;  // false: only for the rows about accumulation and about large vocabularies
};

// In the order of the table. A step takes 0.2 ms (the first) to 350 ms (resnet50) on two cores.
[[nodiscard]] const std::vector<BenchModelInfo>& bench_models();

// The model of that name; ConfigError with the nearest name if unknown.
[[nodiscard]] const BenchModelInfo& bench_model(const std::string& name);

// Equal names and options give equal weights and data. ConfigError as bench_model().
[[nodiscard]] BenchModel make_bench_model(const std::string& name, const BenchOptions& options);

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// The default order: every sample exactly once per epoch, computed per index. Used by ImageLoader, TensorSource and
// TokenWindows. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/data/order/batch_order.h"
#include "stoker/data/order/equal_batches.h"

namespace stoker::data {

struct SamplerOptions {
  std::int64_t samples = 0;  // in the split
  std::int64_t batch = 0;    // global batch: samples over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;     // false: in order, the same in every epoch
  bool drop_tail = false;  // leave out the last batch of an epoch if it is short
  int rank = 0;
  int ranks = 1;
};

class Sampler final : public BatchOrder {
 public:
  // ConfigError for values out of range, and for drop_tail if no batch would be left.
  explicit Sampler(const SamplerOptions& options);

  [[nodiscard]] std::int64_t samples() const override { return options_.samples; }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return batches_.steps(); }
  // batch, or fewer in the tail.
  [[nodiscard]] std::int64_t global_size(std::int64_t, std::int64_t step) const override {
    return batches_.global_size(step);
  }
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const override;

 private:
  SamplerOptions options_;
  EqualBatches batches_;
};

}  // namespace stoker::data

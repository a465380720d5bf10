// SPDX-License-Identifier: Apache-2.0
// Draws samples with replacement in proportion to their weights. The sample of a draw depends only on (seed, epoch,
// number of the draw) and takes constant time. Used for `sampling=balanced`. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/data/order/batch_order.h"
#include "stoker/data/order/equal_batches.h"
#include "stoker/data/order/label_list.h"

namespace stoker::data {

struct WeightedSamplerOptions {
  std::vector<double> weights = {};  // per sample; finite, not negative, not all 0; only ratios count
  std::int64_t draws = 0;            // per epoch; 0: the number of samples
  std::int64_t batch = 0;            // global: samples over all ranks
  std::uint64_t seed = 0;
  bool drop_tail = false;  // leave out the last batch of an epoch if it is short
  int rank = 0;
  int ranks = 1;
};

// Walker's alias method in integers, so that every machine draws the same: probabilities are multiples of 2^-32 of the
// mean probability. A sample with weight 0 is never drawn; a positive weight counts as at least one such multiple.
// Construction takes linear time, and 8 bytes per sample.
class WeightedSampler final : public BatchOrder {
 public:
  // ConfigError for invalid weights, values out of range, more than 2^31 samples or kMostDraws draws.
  explicit WeightedSampler(const WeightedSamplerOptions& options);

  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(columns_.size()); }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return batches_.steps(); }
  [[nodiscard]] std::int64_t global_size(std::int64_t, std::int64_t step) const override {
    return batches_.global_size(step);
  }
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const override;
  [[nodiscard]] std::optional<std::int64_t> first_draw(std::int64_t step) const override {
    return batches_.slice(step).first;
  }
  // The exact probability of a sample, in units of 2^-32 / samples().
  [[nodiscard]] std::vector<std::uint64_t> units() const;

 private:
  // A draw selects a column uniformly. It gives the column's own sample if 32 random bits are below `own`, else
  // `other`, which is the own sample if the column has no other.
  struct Column {
    std::uint32_t own = 0;
    std::uint32_t other = 0;
  };
  [[nodiscard]] std::int64_t draw(std::int64_t epoch, std::int64_t number) const;

  std::uint64_t seed_;
  EqualBatches batches_;
  std::vector<Column> columns_;
};

// Weights that draw every existing class equally often: 1 / (number of samples of the class).
[[nodiscard]] std::vector<double> balanced_weights(const LabelList& labels);

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// A mixture of several sets with given shares, each in its own shuffled order: every sample of a set is drawn once
// before any is drawn again, over the whole run. The set and sample of a draw depend only on its number in the run.
// Used with ImageLoader and TensorSource. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/data/order/batch_order.h"
#include "stoker/data/order/equal_batches.h"

namespace stoker::data {

struct MixtureSet {
  std::int64_t samples = 0;  // at least 1
  double weight = 0;         // positive; only ratios count
};

struct MixtureOptions {
  std::vector<MixtureSet> sets = {};
  std::int64_t draws = 0;  // per epoch; 0: the number of samples of all sets
  std::int64_t batch = 0;  // global: samples over all ranks
  std::uint64_t seed = 0;
  bool drop_tail = false;  // an epoch only has whole batches
  int rank = 0;
  int ranks = 1;
};

// Positions refer to the concatenation of the sets. A run is one sequence of draws across epochs: a set continues where
// the previous epoch stopped, and starts its next order when it is finished. After every whole block of 256 draws each
// set has its share to within one draw per set; the order inside a block is drawn. State and time of a batch do not
// depend on the number of samples.
class Mixture final : public BatchOrder {
 public:
  static constexpr std::int64_t kBlock = 256;

  // ConfigError for invalid sets, values out of range, or more than kMostDraws draws.
  explicit Mixture(MixtureOptions options);

  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return batches_.steps(); }
  [[nodiscard]] std::int64_t global_size(std::int64_t, std::int64_t step) const override {
    return batches_.global_size(step);
  }
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const override;
  [[nodiscard]] std::optional<std::int64_t> first_draw(std::int64_t step) const override {
    return batches_.slice(step).first;
  }
  // The set of a position.
  [[nodiscard]] std::size_t set_of(std::int64_t position) const;
  // Number of draws of each set among the first `draws` of the run, if blocks were not shuffled.
  void counts(std::int64_t draws, std::vector<std::int64_t>& out) const;

 private:
  [[nodiscard]] std::int64_t sample_of(std::size_t set, std::int64_t draw) const;
  void append(std::int64_t block, std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) const;

  MixtureOptions options_;
  std::int64_t samples_ = 0, draws_ = 0;
  EqualBatches batches_;
  std::vector<std::int64_t> begins_;  // first position of each set, and the end
  std::vector<std::int64_t> shares_;  // share of each set in the sum of itself and all later sets
  std::vector<std::int64_t> rests_;   // these sums, per set
  std::vector<std::uint64_t> seeds_;  // for the orders of each set, and for the blocks
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Several sets in given shares, each walked in a shuffled order of its own: every sample of a set comes once before any
// comes again, for the whole run. Which set and which sample a draw gives follows from its place in the run alone.
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
  std::int64_t draws = 0;  // of an epoch; 0: as many as all sets have samples
  std::int64_t batch = 0;  // global: samples over all ranks
  std::uint64_t seed = 0;
  bool drop_tail = false;  // an epoch is cut down to whole batches
  int rank = 0;
  int ranks = 1;
};

// Positions are those in the sets end to end. A run is one row of draws that epochs only cut: a set goes on where the
// epoch before left it, and begins its next order when it is through. After any whole block of 256 draws each set had
// its share to within one draw for each set; inside of a block their order is drawn. State and time of a batch do not
// depend on the samples.
class Mixture final : public BatchOrder {
 public:
  static constexpr std::int64_t kBlock = 256;

  // ConfigError for sets or numbers that cannot be, or more than kMostDraws draws.
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
  // Draws of each set among the first `draws` of the run, if the run's blocks were not shuffled.
  void counts(std::int64_t draws, std::vector<std::int64_t>& out) const;

 private:
  [[nodiscard]] std::int64_t sample_of(std::size_t set, std::int64_t draw) const;
  void append(std::int64_t block, std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) const;

  MixtureOptions options_;
  std::int64_t samples_ = 0, draws_ = 0;
  EqualBatches batches_;
  std::vector<std::int64_t> begins_;  // of each set's positions, and the end
  std::vector<std::int64_t> shares_;  // of each set, as a part of what it and the sets behind it have together
  std::vector<std::int64_t> rests_;   // of each set: these sums
  std::vector<std::uint64_t> seeds_;  // of each set's orders, and of the blocks'
};

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// How an epoch of so many samples is cut into batches of one size and a tail, and a batch into the slices of ranks: the
// arithmetic that the orders of samples share. A value; thread-safe.
#pragma once

#include <cstdint>

namespace stoker::data {

class EqualBatches {
 public:
  struct Options {
    std::int64_t samples = 0;  // of an epoch
    std::int64_t batch = 0;    // global: samples over all ranks
    bool drop_tail = false;    // leave out the last batch of an epoch if it is short
    int rank = 0;
    int ranks = 1;
  };
  // ConfigError for numbers that cannot be, and for drop_tail that would leave no batch at all.
  explicit EqualBatches(const Options& options);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  // Samples of the global batch at step (0 ... steps() - 1): batch, or less in the tail.
  [[nodiscard]] std::int64_t global_size(std::int64_t step) const;
  // This rank's part of it, first ... last - 1 of the epoch's samples.
  struct Slice {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  [[nodiscard]] Slice slice(std::int64_t step) const;

 private:
  Options options_;
  std::int64_t steps_ = 0;
};

// Rank `rank`'s part of first ... first + size - 1: parts of ranks lie end to end and differ by 1 at most.
[[nodiscard]] EqualBatches::Slice slice_of_rank(std::int64_t first, std::int64_t size, int rank, int ranks);
// ConfigError for a rank that cannot be.
void check_rank(int rank, int ranks);

}  // namespace stoker::data

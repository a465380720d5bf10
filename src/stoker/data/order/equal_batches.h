// SPDX-License-Identifier: Apache-2.0
// Divides an epoch into batches of equal size and a tail, and a batch into the slices of ranks: arithmetic shared by
// the orders of samples. A value; thread-safe.
#pragma once

#include <cstdint>

namespace stoker::data {

class EqualBatches {
 public:
  struct Options {
    std::int64_t samples = 0;  // per epoch
    std::int64_t batch = 0;    // global: samples over all ranks
    bool drop_tail = false;    // leave out the last batch of an epoch if it is short
    int rank = 0;
    int ranks = 1;
  };
  // ConfigError for values out of range, and for drop_tail if no batch would be left.
  explicit EqualBatches(const Options& options);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  // Samples of the global batch at step (0 ... steps() - 1): batch, or fewer in the tail.
  [[nodiscard]] std::int64_t global_size(std::int64_t step) const;
  // This rank's part of it: samples first ... last - 1 of the epoch.
  struct Slice {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  [[nodiscard]] Slice slice(std::int64_t step) const;

 private:
  Options options_;
  std::int64_t steps_ = 0;
};

// The part of rank `rank` of first ... first + size - 1: parts of ranks are contiguous and differ by at most 1.
[[nodiscard]] EqualBatches::Slice slice_of_rank(std::int64_t first, std::int64_t size, int rank, int ranks);
// ConfigError for a rank out of range.
void check_rank(int rank, int ranks);

}  // namespace stoker::data

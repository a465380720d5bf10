// SPDX-License-Identifier: Apache-2.0
// Which samples make up the batch at (epoch, step): a pure function, so resuming is asking for a later step, and every
// rank, thread count and format agree. Used by ImageLoader. Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::data {

struct SamplerOptions {
  std::int64_t samples = 0;  // in the split
  std::int64_t batch = 0;    // global batch: samples over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;     // false: in order, the same every epoch
  bool drop_tail = false;  // leave out the last batch of an epoch if it is short
  int rank = 0;
  int ranks = 1;
};

class Sampler {
 public:
  // ConfigError for numbers that cannot be, and for drop_tail that would leave no batch at all.
  explicit Sampler(const SamplerOptions& options);

  [[nodiscard]] std::int64_t steps_per_epoch() const { return steps_; }
  // Samples of the global batch at step (0 ... steps_per_epoch() - 1): batch, or less in the tail.
  [[nodiscard]] std::int64_t global_size(std::int64_t step) const;
  // This rank's contiguous slice of the global batch, as positions 0 ... samples - 1 in the split; may be empty.
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const;

 private:
  SamplerOptions options_;
  std::int64_t steps_ = 0;
};

}  // namespace stoker::data

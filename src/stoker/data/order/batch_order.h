// SPDX-License-Identifier: Apache-2.0
// The samples of the batch at (epoch, step), as a pure function: resuming means asking for a later step, and the order
// is the same for every number of ranks and threads and for every format. Used by ImageLoader and TensorSource.
// Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stoker::data {

class BatchOrder {
 public:
  BatchOrder() = default;
  BatchOrder(const BatchOrder&) = delete;
  BatchOrder& operator=(const BatchOrder&) = delete;
  virtual ~BatchOrder() = default;

  // Positions are 0 ... samples() - 1.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  // The same for every epoch.
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  // Number of samples of the global batch, over all ranks, at a step (0 ... steps_per_epoch() - 1) of an epoch.
  [[nodiscard]] virtual std::int64_t global_size(std::int64_t epoch, std::int64_t step) const = 0;
  // This rank's contiguous slice of the global batch; may be empty.
  virtual void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const = 0;
  // If samples may repeat in an epoch: the number of draws of the epoch before this rank's slice, below kMostDraws, so
  // that each row has its own draw number to distinguish copies of a sample. Empty: no sample repeats.
  [[nodiscard]] virtual std::optional<std::int64_t> first_draw(std::int64_t /*step*/) const { return std::nullopt; }

  static constexpr std::int64_t kMostDraws = std::int64_t{1} << 31;
};

}  // namespace stoker::data

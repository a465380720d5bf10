// SPDX-License-Identifier: Apache-2.0
// Which samples make up the batch at (epoch, step): a pure function, so resuming is asking for a later step, and every
// rank, thread count and format agree. What ImageLoader and TensorSource ask. Thread-safe: immutable.
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

  // Positions that may come up: 0 ... samples() - 1.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  // The same for every epoch.
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  // Samples of the global batch at a step (0 ... steps_per_epoch() - 1) of an epoch, over all ranks.
  [[nodiscard]] virtual std::int64_t global_size(std::int64_t epoch, std::int64_t step) const = 0;
  // This rank's contiguous slice of the global batch; may be empty.
  virtual void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const = 0;
  // Where a sample may come twice in an epoch: how many draws of the epoch come before this rank's slice, so that each
  // row has a number of its own that tells copies of a sample apart, below kMostDraws. Empty: no sample comes twice.
  [[nodiscard]] virtual std::optional<std::int64_t> first_draw(std::int64_t /*step*/) const { return std::nullopt; }

  static constexpr std::int64_t kMostDraws = std::int64_t{1} << 31;
};

}  // namespace stoker::data

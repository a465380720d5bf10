// SPDX-License-Identifier: Apache-2.0
// Reduces curves of any length to a bounded number of points: neighbouring rows share a bucket with mean, minimum and
// maximum of each column. So a spike in one step stays visible, and a value that is not finite is never averaged away.
// Used by the report. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace stoker::io {

// Statistics of one column over the rows of a bucket. Missing values are not counted.
struct ColumnBucket {
  double sum = 0;  // of finite values, like the other members
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  std::int64_t finite = 0;      // number of values
  std::int64_t not_finite = 0;  // NaN and the infinities

  void add(double value);
  void add(const ColumnBucket& other);
  // NaN if any value was not finite; empty without values.
  [[nodiscard]] std::optional<double> mean() const;
};

struct RowBucket {
  std::int64_t first_step = 0, last_step = 0;
  std::int64_t rows = 0;
  double time = 0;  // of the last row
  std::vector<ColumnBucket> columns;
};

class Downsample {
 public:
  // Keeps at most `most` buckets (even, at least 2), and at least half of them once there were that many rows. All
  // except the last have the same number of rows, a power of two.
  Downsample(std::size_t columns, std::size_t most);

  // Rows must be in order; values has one entry per column.
  void add(std::int64_t step, double time, std::span<const std::optional<double>> values);
  // Limits the number of buckets to `most` from now on.
  void limit(std::size_t most);
  [[nodiscard]] const std::vector<RowBucket>& buckets() const { return buckets_; }

 private:
  void halve();

  std::size_t columns_, most_;
  std::int64_t width_ = 1;  // rows per bucket
  std::vector<RowBucket> buckets_;
};

}  // namespace stoker::io

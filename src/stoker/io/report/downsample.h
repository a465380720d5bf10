// SPDX-License-Identifier: Apache-2.0
// Curves of any length in a bounded number of points: neighbouring rows share a bucket that keeps mean, minimum and
// maximum of each column, so that a spike of one step stays visible, and a value that is not finite is never averaged
// away. Used by the report. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace stoker::io {

// What one column held in the rows of a bucket. A value that a row did not have is in none of these.
struct ColumnBucket {
  double sum = 0;  // of the finite values, like the rest
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  std::int64_t finite = 0;      // how many
  std::int64_t not_finite = 0;  // NaN and the infinities

  void add(double value);
  void add(const ColumnBucket& other);
  // NaN where any value was not finite; empty where there was no value at all.
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
  // Keeps at most `most` buckets (even, at least 2), and at least half as many once there were that many rows. All but
  // the last hold the same number of rows, a power of two.
  Downsample(std::size_t columns, std::size_t most);

  // Rows come in order; values has one place a column.
  void add(std::int64_t step, double time, std::span<const std::optional<double>> values);
  // From now on at most `most` buckets.
  void limit(std::size_t most);
  [[nodiscard]] const std::vector<RowBucket>& buckets() const { return buckets_; }

 private:
  void halve();

  std::size_t columns_, most_;
  std::int64_t width_ = 1;  // rows a bucket
  std::vector<RowBucket> buckets_;
};

}  // namespace stoker::io

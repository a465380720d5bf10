// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/report/downsample.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stoker::io {
namespace {

std::size_t even(std::size_t most) { return std::max<std::size_t>(2, most / 2 * 2); }

}  // namespace

void ColumnBucket::add(double value) {
  if (!std::isfinite(value)) {
    ++not_finite;
    return;
  }
  ++finite;
  sum += value;
  lowest = std::min(lowest, value);
  highest = std::max(highest, value);
}

void ColumnBucket::add(const ColumnBucket& other) {
  sum += other.sum;
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
  finite += other.finite;
  not_finite += other.not_finite;
}

std::optional<double> ColumnBucket::mean() const {
  if (not_finite > 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return finite > 0 ? std::optional(sum / static_cast<double>(finite)) : std::nullopt;
}

Downsample::Downsample(std::size_t columns, std::size_t most) : columns_(columns), most_(even(most)) {}

void Downsample::add(std::int64_t step, double time, std::span<const std::optional<double>> values) {
  if (buckets_.empty() || buckets_.back().rows == width_) {
    if (buckets_.size() == most_) {
      halve();
    }
    buckets_.push_back({.first_step = step,
                        .last_step = step,
                        .rows = 0,
                        .time = time,
                        .columns = std::vector<ColumnBucket>(columns_)});
  }
  RowBucket& bucket = buckets_.back();
  bucket.last_step = step;
  bucket.time = time;
  ++bucket.rows;
  for (std::size_t i = 0; i < std::min(columns_, values.size()); ++i) {
    if (values[i]) {
      bucket.columns[i].add(*values[i]);
    }
  }
}

void Downsample::limit(std::size_t most) {
  most_ = even(most);
  while (buckets_.size() > most_) {
    halve();
  }
}

// Merges pairs; a last bucket without a partner stays and is filled by later rows.
void Downsample::halve() {
  std::vector<RowBucket> halved;
  halved.reserve(most_);
  for (std::size_t i = 0; i < buckets_.size(); i += 2) {
    halved.push_back(std::move(buckets_[i]));
    if (i + 1 < buckets_.size()) {
      RowBucket& merged = halved.back();
      const RowBucket& second = buckets_[i + 1];
      merged.last_step = second.last_step;
      merged.time = second.time;
      merged.rows += second.rows;
      for (std::size_t column = 0; column < columns_; ++column) {
        merged.columns[column].add(second.columns[column]);
      }
    }
  }
  buckets_ = std::move(halved);
  width_ *= 2;
}

}  // namespace stoker::io

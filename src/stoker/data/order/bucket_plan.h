// SPDX-License-Identifier: Apache-2.0
// Batches of samples of similar length within a budget of tokens: every sample once per epoch, little padding. A plan
// made from stored lengths; its state is (hash(), position). Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/data/order/batch_order.h"

namespace stoker::data {

struct BucketOptions {
  std::int64_t tokens = 0;  // maximum per global batch, including padding
  double spread = 0.1;      // how much shorter than the longest of its bucket a sample may be; 0 ... 1
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: longest first, the same in every epoch
  int rank = 0;
  int ranks = 1;
};

// Samples, sorted from longest to shortest, are divided into buckets of whole batches. A bucket includes lengths that
// are shorter by up to `spread`, or as many as one batch needs. In every epoch the samples of a bucket are shuffled
// among its batches, and all batches of the epoch are shuffled. A batch is padded to the longest sample of its bucket,
// so there are few shapes, known in advance: length(). All ranks take part in every step, each with its slice of the
// rows, which may be empty. Construction takes O(n log n) time, and 4 bytes per sample.
class BucketPlan final : public BatchOrder {
 public:
  // lengths: tokens of each sample. ConfigError for options out of range, DataError with the number of a sample whose
  // length is negative or above the budget.
  BucketPlan(std::span<const std::int64_t> lengths, const BucketOptions& options);

  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(sorted_.size()); }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return steps_; }
  [[nodiscard]] std::int64_t global_size(std::int64_t epoch, std::int64_t step) const override;
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const override;
  // Length in tokens of each padded row of the batch.
  [[nodiscard]] std::int64_t length(std::int64_t epoch, std::int64_t step) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }         // of all samples
  [[nodiscard]] std::int64_t padded_tokens() const { return padded_; }  // of all batches of an epoch
  [[nodiscard]] double waste() const;                                   // share of padding in these
  [[nodiscard]] std::uint64_t hash() const { return hash_; }            // see plan_hash.h

 private:
  // Samples first ... first + count - 1 of sorted_, in batches of `rows`; the very last batch may be short.
  struct Bucket {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int64_t rows = 0;
    std::int64_t length = 0;
    std::int64_t first_batch = 0;
  };
  // A batch of a bucket: rows first ... last - 1 of its samples.
  struct Place {
    std::size_t bucket = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  void cut(std::span<const std::int64_t> lengths);
  [[nodiscard]] Place place(std::int64_t epoch, std::int64_t step) const;

  BucketOptions options_;
  std::int64_t steps_ = 0, tokens_ = 0, padded_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<std::uint32_t> sorted_;  // samples by decreasing length, then by number
  std::vector<Bucket> buckets_;
};

}  // namespace stoker::data

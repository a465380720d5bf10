// SPDX-License-Identifier: Apache-2.0
// Batches of samples of similar length, as many as a budget of tokens holds: every sample once an epoch, little
// padding. A plan over stored lengths; its state is (hash(), position). Thread-safe: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stoker/data/order/batch_order.h"

namespace stoker::data {

struct BucketOptions {
  std::int64_t tokens = 0;  // of a global batch, padding included, at most
  double spread = 0.1;      // how much shorter than the bucket's longest a sample may be, as a share of it; 0 ... 1
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: longest first, the same every epoch
  int rank = 0;
  int ranks = 1;
};

// Samples, the longest first, are cut into buckets of whole batches; a bucket reaches to lengths shorter by `spread`,
// or as far as one batch needs. Every epoch a bucket's samples are shuffled among its batches, and all batches in the
// epoch. A batch is padded to its bucket's longest sample, so there are few shapes, known beforehand: length(). All
// ranks take part in every step, each with its slice of the rows, which may be empty. O(n log n) to make, 4 bytes a
// sample.
class BucketPlan final : public BatchOrder {
 public:
  // lengths: tokens of each sample. ConfigError for options that cannot be, DataError that names a sample of a length
  // below 0 or above the budget.
  BucketPlan(std::span<const std::int64_t> lengths, const BucketOptions& options);

  [[nodiscard]] std::int64_t samples() const override { return static_cast<std::int64_t>(sorted_.size()); }
  [[nodiscard]] std::int64_t steps_per_epoch() const override { return steps_; }
  [[nodiscard]] std::int64_t global_size(std::int64_t epoch, std::int64_t step) const override;
  void positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const override;
  // Tokens that each row of the batch is padded to.
  [[nodiscard]] std::int64_t length(std::int64_t epoch, std::int64_t step) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }         // of all samples
  [[nodiscard]] std::int64_t padded_tokens() const { return padded_; }  // of all batches of an epoch
  [[nodiscard]] double waste() const;                                   // share of these that is padding
  [[nodiscard]] std::uint64_t hash() const { return hash_; }            // see plan_hash.h

 private:
  // Samples first ... first + count - 1 of sorted_, in batches of `rows`, of which the very last may be short.
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
  std::vector<std::uint32_t> sorted_;  // samples by falling length, then by number
  std::vector<Bucket> buckets_;
};

}  // namespace stoker::data

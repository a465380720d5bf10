// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/order/bucket_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/permutation.h"
#include "stoker/data/order/equal_batches.h"
#include "stoker/data/order/plan_hash.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.bucket_plan";

void check(std::span<const std::int64_t> lengths, const BucketOptions& options) {
  check_rank(options.rank, options.ranks);
  if (options.tokens < 1) {
    fail<ConfigError>(kWhere, "tokens per batch must be positive, got {}", options.tokens);
  }
  if (!(options.spread >= 0 && options.spread <= 1)) {
    fail<ConfigError>(kWhere, "spread must be 0 to 1, got {}", options.spread);
  }
  if (lengths.size() >= (std::uint64_t{1} << 32)) {
    fail<ConfigError>(kWhere, "a plan can have fewer than 2^32 samples, got {}", lengths.size());
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > options.tokens) {
      fail<DataError>(
          kWhere, "sample {} has {} tokens, but a batch has at most {}; allow more tokens per batch, or cut the sample",
          i, lengths[i], options.tokens);
    }
  }
}

}  // namespace

BucketPlan::BucketPlan(std::span<const std::int64_t> lengths, const BucketOptions& options) : options_(options) {
  check(lengths, options);
  hash_ =
      plan_hash(std::array{std::uint64_t{2}, static_cast<std::uint64_t>(options.tokens),
                           std::bit_cast<std::uint64_t>(options.spread), options.seed, std::uint64_t{options.shuffle}},
                lengths);
  sorted_.resize(lengths.size());
  std::iota(sorted_.begin(), sorted_.end(), 0U);
  std::ranges::stable_sort(sorted_, std::ranges::greater{}, [&](std::uint32_t sample) { return lengths[sample]; });
  tokens_ = std::reduce(lengths.begin(), lengths.end(), std::int64_t{0});
  cut(lengths);
}

void BucketPlan::cut(std::span<const std::int64_t> lengths) {
  const auto length_at = [&](std::int64_t rank) { return lengths[sorted_[static_cast<std::size_t>(rank)]]; };
  const std::int64_t all = samples();
  for (std::int64_t first = 0; first < all;) {
    const std::int64_t longest = std::max<std::int64_t>(1, length_at(first));
    const std::int64_t rows = options_.tokens / longest;
    const double reach = options_.spread * static_cast<double>(longest);
    const std::int64_t shortest = longest - static_cast<std::int64_t>(reach);
    const auto beyond = std::partition_point(sorted_.begin() + first, sorted_.end(), [&](std::uint32_t sample) {
      return std::max<std::int64_t>(1, lengths[sample]) >= shortest;
    });
    const std::int64_t near = beyond - sorted_.begin() - first;
    const std::int64_t count = std::min(all - first, std::max(rows, near / rows * rows));
    buckets_.push_back({.first = first, .count = count, .rows = rows, .length = longest, .first_batch = steps_});
    steps_ += (count + rows - 1) / rows;
    padded_ += count * longest;
    first += count;
  }
}

BucketPlan::Place BucketPlan::place(std::int64_t epoch, std::int64_t step) const {
  if (step < 0 || step >= steps_) {
    fail<ConfigError>(kWhere, "step {} is out of range; an epoch has {} steps", step, steps_);
  }
  std::int64_t batch = step;
  if (options_.shuffle) {
    const Permutation order(derived_seed(options_.seed, buckets_.size()), static_cast<std::uint32_t>(epoch),
                            static_cast<std::uint64_t>(steps_));
    batch = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(step)));
  }
  const auto after = std::ranges::upper_bound(buckets_, batch, {}, &Bucket::first_batch);
  const auto bucket = static_cast<std::size_t>(after - buckets_.begin()) - 1;
  const Bucket& of = buckets_[bucket];
  const std::int64_t first = (batch - of.first_batch) * of.rows;
  return {bucket, first, std::min(first + of.rows, of.count)};
}

std::int64_t BucketPlan::global_size(std::int64_t epoch, std::int64_t step) const {
  const Place at = place(epoch, step);
  return at.last - at.first;
}

void BucketPlan::positions(std::int64_t epoch, std::int64_t step, std::vector<std::int64_t>& out) const {
  const Place at = place(epoch, step);
  const Bucket& bucket = buckets_[at.bucket];
  const auto [first, last] = slice_of_rank(at.first, at.last - at.first, options_.rank, options_.ranks);
  out.resize(static_cast<std::size_t>(last - first));
  std::iota(out.begin(), out.end(), first);
  if (options_.shuffle) {
    const Permutation order(derived_seed(options_.seed, at.bucket), static_cast<std::uint32_t>(epoch),
                            static_cast<std::uint64_t>(bucket.count));
    order.fill(static_cast<std::uint64_t>(first), out);
  }
  for (std::int64_t& position : out) {
    position = sorted_[static_cast<std::size_t>(bucket.first + position)];
  }
}

std::int64_t BucketPlan::length(std::int64_t epoch, std::int64_t step) const {
  return buckets_[place(epoch, step).bucket].length;
}

double BucketPlan::waste() const {
  return padded_ == 0 ? 0 : 1 - static_cast<double>(tokens_) / static_cast<double>(padded_);
}

}  // namespace stoker::data

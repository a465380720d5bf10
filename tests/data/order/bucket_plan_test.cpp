// SPDX-License-Identifier: Apache-2.0
// Length buckets: every sample once per epoch, no batch above the budget, little padding, new batches in every epoch.
#include "stoker/data/order/bucket_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/data/order/plan_hash.h"

namespace stoker::data {
namespace {

using Lengths = std::vector<std::int64_t>;

// Lengths of documents in tokens, which are roughly log-normal. most: the maximum, to which longer ones are cut.
Lengths log_normal(std::size_t count, double median, double sigma, std::int64_t most) {
  std::mt19937 random(9);
  Lengths lengths(count);
  for (std::int64_t& length : lengths) {
    double normal = -6;  // a sum of twelve uniform numbers: the same on every machine
    for (int i = 0; i < 12; ++i) {
      normal += static_cast<double>(random()) * 0x1p-32;
    }
    length = std::clamp<std::int64_t>(std::llround(median * std::exp(sigma * normal)), 1, most);
  }
  return lengths;
}

// Checks an epoch and returns its samples by batch.
std::vector<Lengths> epoch_of(const BucketPlan& plan, const Lengths& lengths, std::int64_t tokens, std::int64_t epoch) {
  std::vector<Lengths> batches(static_cast<std::size_t>(plan.steps_per_epoch()));
  Lengths times(lengths.size());
  std::int64_t padded = 0, short_ones = 0;
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    Lengths& batch = batches[static_cast<std::size_t>(step)];
    plan.positions(epoch, step, batch);
    const auto rows = static_cast<std::int64_t>(batch.size());
    EXPECT_EQ(rows, plan.global_size(epoch, step));
    EXPECT_GE(rows, 1);
    EXPECT_LE(rows * plan.length(epoch, step), tokens);
    padded += rows * plan.length(epoch, step);
    short_ones += (rows + 1) * plan.length(epoch, step) <= tokens ? 1 : 0;
    for (const std::int64_t sample : batch) {
      ++times[static_cast<std::size_t>(sample)];
      EXPECT_LE(lengths[static_cast<std::size_t>(sample)], plan.length(epoch, step));
    }
  }
  EXPECT_TRUE(std::ranges::all_of(times, [](std::int64_t count) { return count == 1; }));
  EXPECT_EQ(padded, plan.padded_tokens());
  EXPECT_LE(short_ones, 1);  // the last batch of the shortest samples
  EXPECT_EQ(plan.tokens(), std::reduce(lengths.begin(), lengths.end(), std::int64_t{0}));
  return batches;
}

TEST(BucketPlan, EverySampleOnceAnEpochWithinTheBudget) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const auto tokens = static_cast<std::int64_t>(random() % 300 + 1);
    Lengths lengths(random() % 200);
    for (std::int64_t& length : lengths) {
      length = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(tokens + 1));  // up to the whole budget
    }
    const double spread = trial % 5 * 0.25;
    const BucketPlan plan(lengths, {.tokens = tokens, .spread = spread, .seed = 3});
    (void)epoch_of(plan, lengths, tokens, 0);
    (void)epoch_of(plan, lengths, tokens, 7);
    const BucketPlan straight(lengths, {.tokens = tokens, .spread = spread, .shuffle = false});
    (void)epoch_of(straight, lengths, tokens, 1);
    ASSERT_EQ(straight.steps_per_epoch(), plan.steps_per_epoch());
  }
}

TEST(BucketPlan, PadsLittle) {
  const Lengths lengths = log_normal(50'000, 180, 0.8, 2048);
  const BucketPlan plan(lengths, {.tokens = 16'384, .seed = 1});
  (void)epoch_of(plan, lengths, 16'384, 0);
  RecordProperty("waste", fmt::format("{:.4f}", plan.waste()));
  EXPECT_LT(plan.waste(), 0.06);
  EXPECT_GT(plan.waste(), 0);
  EXPECT_NEAR(plan.waste(), 1 - static_cast<double>(plan.tokens()) / static_cast<double>(plan.padded_tokens()), 1e-15);
  // Only a few more batches than if all were full.
  const double fewest = static_cast<double>(plan.tokens()) / 16'384;
  EXPECT_LT(static_cast<double>(plan.steps_per_epoch()), 1.15 * fewest);
  // In unsorted order, with each batch padded to its longest sample, more than half would be padding.
  double unsorted = 0;
  for (std::size_t i = 0; i + 64 <= lengths.size(); i += 64) {
    const auto first = lengths.begin() + static_cast<std::ptrdiff_t>(i);
    unsorted += 64.0 * static_cast<double>(*std::max_element(first, first + 64));
  }
  EXPECT_GT(1 - static_cast<double>(plan.tokens()) / unsorted, 0.5);
  EXPECT_LT(BucketPlan(lengths, {.tokens = 16'384, .spread = 0}).waste(), plan.waste());
  const Lengths equal(1000, 16);
  EXPECT_EQ(BucketPlan(equal, {.tokens = 160}).waste(), 0);
  EXPECT_EQ(BucketPlan(equal, {.tokens = 160}).steps_per_epoch(), 100);
}

TEST(BucketPlan, EveryEpochMixesDifferently) {
  const Lengths lengths = log_normal(5000, 100, 0.7, 1000);
  const BucketPlan plan(lengths, {.tokens = 4000, .seed = 1});
  const auto first = epoch_of(plan, lengths, 4000, 0), again = epoch_of(plan, lengths, 4000, 0),
             second = epoch_of(plan, lengths, 4000, 1);
  EXPECT_EQ(first, again);
  const auto sets = [](const std::vector<Lengths>& batches) {
    std::set<Lengths> all;
    for (Lengths batch : batches) {
      std::ranges::sort(batch);
      all.insert(std::move(batch));
    }
    return all;
  };
  const auto of_first = sets(first), of_second = sets(second);
  std::vector<Lengths> same;
  std::ranges::set_intersection(of_first, of_second, std::back_inserter(same));
  EXPECT_LT(same.size(), of_first.size() / 4);  // the longest samples have buckets of a single batch, which repeats
  // Long and short batches alternate: the lengths of neighbours in an epoch are not sorted.
  int rising = 0;
  for (std::int64_t step = 1; step < plan.steps_per_epoch(); ++step) {
    rising += plan.length(0, step) > plan.length(0, step - 1) ? 1 : 0;
  }
  EXPECT_GT(rising, plan.steps_per_epoch() / 3);
  std::map<std::int64_t, int> shapes;
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    ++shapes[plan.length(0, step)];
  }
  EXPECT_LT(shapes.size(), 45U);
}

TEST(BucketPlan, RanksShareEveryBatch) {
  const Lengths lengths = log_normal(700, 60, 0.9, 400);
  const BucketPlan whole(lengths, {.tokens = 1000, .seed = 2});
  for (const int ranks : {2, 4, 16}) {
    for (std::int64_t step = 0; step < whole.steps_per_epoch(); ++step) {
      Lengths expected, joined, part;
      whole.positions(3, step, expected);
      for (int rank = 0; rank < ranks; ++rank) {
        const BucketPlan mine(lengths, {.tokens = 1000, .seed = 2, .rank = rank, .ranks = ranks});
        ASSERT_EQ(mine.steps_per_epoch(), whole.steps_per_epoch());
        ASSERT_EQ(mine.hash(), whole.hash());
        ASSERT_EQ(mine.length(3, step), whole.length(3, step));
        mine.positions(3, step, part);
        ASSERT_LE(part.size(), expected.size() / static_cast<std::size_t>(ranks) + 1);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      ASSERT_EQ(joined, expected);
    }
  }
}

TEST(BucketPlan, TheHashIsThatOfLengthsAndOptions) {
  Lengths lengths{5, 3, 8, 8};
  const BucketOptions options{.tokens = 16, .seed = 1};
  const std::uint64_t hash = BucketPlan(lengths, options).hash();
  EXPECT_EQ(BucketPlan(lengths, options).hash(), hash);
  EXPECT_NO_THROW(check_plan("here", hash, hash));
  const BucketOptions others[] = {{.tokens = 17, .seed = 1},
                                  {.tokens = 16, .seed = 2},
                                  {.tokens = 16, .spread = 0.2, .seed = 1},
                                  {.tokens = 16, .seed = 1, .shuffle = false}};
  for (const BucketOptions& other : others) {
    EXPECT_NE(BucketPlan(lengths, other).hash(), hash);
  }
  std::swap(lengths[0], lengths[1]);
  EXPECT_THROW(check_plan("here", hash, BucketPlan(lengths, options).hash()), CheckpointError);
}

TEST(BucketPlan, RefusesWhatCannotBe) {
  const Lengths lengths{5, 3, 8};
  EXPECT_THROW(BucketPlan(lengths, {.tokens = 7}), DataError);
  EXPECT_THROW(BucketPlan(Lengths{1, -1}, {.tokens = 7}), DataError);
  EXPECT_THROW(BucketPlan(lengths, {.tokens = 0}), ConfigError);
  EXPECT_THROW(BucketPlan(lengths, {.tokens = 10, .spread = 1.5}), ConfigError);
  EXPECT_THROW(BucketPlan(lengths, {.tokens = 10, .spread = std::nan("")}), ConfigError);
  EXPECT_THROW(BucketPlan(lengths, {.tokens = 10, .rank = 2, .ranks = 2}), ConfigError);
  const BucketPlan empty(Lengths{}, {.tokens = 10});
  EXPECT_EQ(empty.steps_per_epoch(), 0);
  EXPECT_EQ(empty.waste(), 0);
  EXPECT_THROW((void)empty.global_size(0, 0), ConfigError);
}

}  // namespace
}  // namespace stoker::data

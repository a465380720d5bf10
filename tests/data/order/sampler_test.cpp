// SPDX-License-Identifier: Apache-2.0
// Every sample comes exactly once per epoch, in the order of base's Permutation. The slices of all ranks form the
// global batch.
#include "stoker/data/order/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/permutation.h"

namespace stoker::data {
namespace {

std::vector<std::int64_t> epoch_of(const SamplerOptions& options, std::int64_t epoch) {
  const Sampler sampler(options);
  std::vector<std::int64_t> all, batch;
  for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    sampler.positions(epoch, step, batch);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(Sampler, HandsOutEverySampleOnceInThePermutationsOrder) {
  const SamplerOptions options{.samples = 103, .batch = 10, .seed = 7};
  std::vector<std::int64_t> epoch = epoch_of(options, 3);
  const Permutation order(7, 3, 103);
  for (std::size_t i = 0; i < epoch.size(); ++i) {
    ASSERT_EQ(epoch[i], static_cast<std::int64_t>(order(i)));
  }
  EXPECT_NE(epoch, epoch_of(options, 4));
  std::ranges::sort(epoch);
  std::vector<std::int64_t> expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(epoch, expected);
  EXPECT_EQ(epoch_of({.samples = 103, .batch = 10, .shuffle = false}, 9), expected);
}

TEST(Sampler, TheTailIsKeptOrDropped) {
  EXPECT_EQ(Sampler({.samples = 103, .batch = 10}).steps_per_epoch(), 11);
  EXPECT_EQ(Sampler({.samples = 103, .batch = 10}).global_size(0, 10), 3);
  EXPECT_EQ(Sampler({.samples = 103, .batch = 10, .drop_tail = true}).steps_per_epoch(), 10);
  EXPECT_EQ(Sampler({.samples = 5, .batch = 64}).global_size(0, 0), 5);  // a batch larger than the data set
  EXPECT_EQ(Sampler({.samples = 0, .batch = 64}).steps_per_epoch(), 0);
}

TEST(Sampler, RanksTogetherAreTheGlobalBatch) {
  const SamplerOptions whole{.samples = 103, .batch = 10, .seed = 7};
  for (const int ranks : {1, 2, 4, 16}) {
    std::vector<std::int64_t> batch, joined, part;
    for (std::int64_t step = 0; step < 11; ++step) {
      Sampler(whole).positions(1, step, batch);
      joined.clear();
      for (int rank = 0; rank < ranks; ++rank) {
        SamplerOptions options = whole;
        options.rank = rank;
        options.ranks = ranks;
        Sampler(options).positions(1, step, part);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      ASSERT_EQ(joined, batch) << ranks << " ranks, step " << step;
    }
  }
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(Sampler({.samples = 10, .batch = 0}), ConfigError);
  EXPECT_THROW(Sampler({.samples = 10, .batch = -3}), ConfigError);
  EXPECT_THROW(Sampler({.samples = -1, .batch = 3}), ConfigError);
  EXPECT_THROW(Sampler({.samples = 10, .batch = 64, .drop_tail = true}), ConfigError);
  EXPECT_THROW(Sampler({.samples = 10, .batch = 2, .rank = 2, .ranks = 2}), ConfigError);
}

}  // namespace
}  // namespace stoker::data

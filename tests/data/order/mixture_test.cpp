// SPDX-License-Identifier: Apache-2.0
// A mixture equals a second implementation in Python. Counting all draws shows that every set has its share at the end
// of every block, and that every sample of a set comes once before any comes again, across epochs.
#include "stoker/data/order/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

using Positions = std::vector<std::int64_t>;

MixtureOptions options_of(std::vector<MixtureSet> sets, std::int64_t draws, std::int64_t batch) {
  MixtureOptions options{.draws = draws, .batch = batch, .seed = 11};
  options.sets = std::move(sets);
  return options;
}

// The draws of the first `epochs` epochs, concatenated.
Positions walk(const Mixture& mixture, std::int64_t epochs) {
  Positions all, part;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t step = 0; step < mixture.steps_per_epoch(); ++step) {
      mixture.positions(epoch, step, part);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

const std::vector<MixtureSet> kSets{{10, 1}, {300, 2.5}, {41, 0.5}};

TEST(Mixture, DrawsWhatASecondImplementationDraws) {  // in Python, which counts draw by draw
  const Positions drawn = walk(Mixture(options_of(kSets, 2000, 64)), 1);
  EXPECT_EQ(Positions(drawn.begin(), drawn.begin() + 16),
            (Positions{116, 124, 313, 9, 205, 38, 341, 192, 6, 55, 209, 277, 7, 1, 316, 344}));
  EXPECT_EQ(Positions(drawn.begin() + 1000, drawn.begin() + 1016),
            (Positions{327, 3, 1, 6, 119, 7, 93, 2, 246, 110, 272, 149, 1, 0, 319, 323}));
  std::uint64_t value = 0xCBF29CE484222325;
  for (const std::int64_t position : drawn) {
    value = (value ^ static_cast<std::uint64_t>(position)) * 0x100000001B3;
  }
  EXPECT_EQ(value, 0x64F69E703BD95ADE);
}

TEST(Mixture, EverySampleOfASetComesOnceBeforeAnyComesAgain) {
  const Mixture mixture(options_of(kSets, 700, 64));
  std::vector<std::set<std::int64_t>> seen(kSets.size());
  std::vector<Positions> passes(kSets.size());
  int through = 0;
  for (const std::int64_t position : walk(mixture, 5)) {
    const std::size_t set = mixture.set_of(position);
    ASSERT_TRUE(seen[set].insert(position).second) << position << " came again too early";
    if (static_cast<std::int64_t>(seen[set].size()) == kSets[set].samples) {
      seen[set].clear();
      ++through;
    }
  }
  EXPECT_EQ(through, 3500 / 4 / 10 + 3500 * 5 / 8 / 300 + 3500 / 8 / 41);
}

TEST(Mixture, EverySetHasItsShareAtAnyMoment) {
  const std::vector<MixtureSet> sets{{7, 1e-3}, {1000, 5}, {1, 0.3}, {90, 1.7}, {3, 5}};
  const Mixture mixture(options_of(sets, 10'000, 100));
  const double sum = 12.001;
  std::vector<std::int64_t> counts(sets.size());
  std::int64_t draws = 0;
  for (const std::int64_t position : walk(mixture, 3)) {
    ++counts[mixture.set_of(position)];
    if (++draws % Mixture::kBlock == 0) {
      for (std::size_t set = 0; set < sets.size(); ++set) {
        const double share = sets[set].weight / sum * static_cast<double>(draws);
        ASSERT_LE(std::abs(static_cast<double>(counts[set]) - share), static_cast<double>(sets.size())) << set;
      }
    }
  }
  EXPECT_GE(counts[0], 2);  // the smallest weight also gets its share: 2.5 of 30,000 draws
}

// Near the start, and after so many draws that the product of draws and shares does not fit into 64 bits.
TEST(Mixture, CountsGrowByOneDrawAtATime) {
  const Mixture mixture(options_of({{5, 0.1}, {5, 1e-9}, {5, 2}, {5, 3.3}}, 100, 10));
  std::vector<std::int64_t> before, now;
  for (const std::int64_t start : {std::int64_t{0}, (std::int64_t{1} << 45) + 12'345}) {
    mixture.counts(start, before);
    for (std::int64_t draws = start + 1; draws < start + 20'000; ++draws) {
      mixture.counts(draws, now);
      std::int64_t grown = 0, sum = 0;
      for (std::size_t set = 0; set < now.size(); ++set) {
        ASSERT_TRUE(now[set] == before[set] || now[set] == before[set] + 1);
        grown += now[set] - before[set];
        sum += now[set];
      }
      ASSERT_EQ(grown, 1);
      ASSERT_EQ(sum, draws);
      before = now;
    }
  }
}

TEST(Mixture, EpochsOnlyCutOneRowOfDraws) {
  const Positions whole = walk(Mixture(options_of(kSets, 1400, 50)), 1);
  EXPECT_EQ(walk(Mixture(options_of(kSets, 700, 64)), 2), whole);
  EXPECT_EQ(walk(Mixture(options_of(kSets, 7, 3)), 200), whole);
  MixtureOptions dropping = options_of(kSets, 710, 100);  // an epoch of 700
  dropping.drop_tail = true;
  EXPECT_EQ(Mixture(dropping).steps_per_epoch(), 7);
  EXPECT_EQ(walk(Mixture(dropping), 2), whole);
  EXPECT_EQ(Mixture(options_of(kSets, 0, 50)).steps_per_epoch(), 8);  // 351 samples
}

TEST(Mixture, BlocksAreShuffled) {
  const Mixture mixture(options_of({{1'000'000, 1}, {1'000'000, 1}}, 0, 2));
  std::vector<std::int64_t> kinds(4), part;
  for (std::int64_t step = 0; step < 20'000; ++step) {
    mixture.positions(0, step, part);
    ++kinds[mixture.set_of(part[0]) * 2 + mixture.set_of(part[1])];
  }
  for (const std::int64_t kind : kinds) {
    EXPECT_NEAR(static_cast<double>(kind), 5000, 250);
  }
}

TEST(Mixture, RefusesWhatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const std::vector<MixtureSet>& sets :
       {std::vector<MixtureSet>{}, {{0, 1}}, {{-3, 1}}, {{5, 0}}, {{5, -1}}, {{5, 1}, {5, nan}}, {{5, inf}}}) {
    EXPECT_THROW(Mixture(options_of(sets, 10, 1)), ConfigError);
  }
  EXPECT_THROW(Mixture(options_of(kSets, -1, 1)), ConfigError);
  EXPECT_THROW(Mixture(options_of(kSets, 10, 0)), ConfigError);
  EXPECT_THROW(Mixture(options_of(kSets, BatchOrder::kMostDraws + 1, 1)), ConfigError);
  EXPECT_THROW((void)Mixture(options_of(kSets, 10, 1)).set_of(351), ConfigError);
}

}  // namespace
}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Paired ratios: published intervals of the sign test, coverage by experiment, turns in order.
#include "stoker/study/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

TEST(Paired, TheIntervalIsThatOfTheSignTest) {
  // Ranks (k, n + 1 - k) of the 95 % interval of a median, from the binomial distribution, as in published tables.
  const std::vector<std::pair<int, int>> known{{6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {15, 4}, {20, 6}, {31, 10}};
  for (const auto& [n, rank] : known) {
    std::vector<double> first, second;
    for (int i = 1; i <= n; ++i) {
      first.push_back((i * 7) % n + 1);  // 1 ... n in another order, if 7 does not divide n
      second.push_back(1);
    }
    const Ratio ratio = ratio_of(first, second);
    EXPECT_EQ(ratio.low, rank) << n;
    EXPECT_EQ(ratio.high, n + 1 - rank) << n;
    EXPECT_EQ(ratio.median, (n + 1) / 2.0) << n;
    EXPECT_EQ(ratio.pairs, n);
  }
}

TEST(Paired, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  std::mt19937 random(1);  // NOLINT: the same draws each time
  std::lognormal_distribution<double> noise(0, 0.3);
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> first, second;
    for (int i = 0; i < 9; ++i) {
      const double both = noise(random);  // a slow moment of the machine slows both sides
      first.push_back(1.2 * both * noise(random));
      second.push_back(both * noise(random));
    }
    const Ratio ratio = ratio_of(first, second);
    held += ratio.low <= 1.2 && 1.2 <= ratio.high ? 1 : 0;
  }
  const double share = static_cast<double>(held) / kTrials;
  EXPECT_NEAR(share, 0.961, 0.015);  // exact value for nine pairs, second to eighth: 0.9609
}

TEST(Paired, NothingIsSaidOfNothing) {
  EXPECT_TRUE(std::isnan(ratio_of({}, {}).median));
  const std::vector<double> good{1, 2}, bad{1, 0}, longer{1, 2, 3};
  EXPECT_TRUE(std::isnan(ratio_of(good, bad).low));
  EXPECT_THROW((void)ratio_of(good, longer), ConfigError);
  EXPECT_TRUE(std::isnan(median_of({})));
}

TEST(Paired, BlocksTakeTurns) {
  std::string calls;
  const Side a{[&] { calls += 'a'; }, [&] { calls += '.'; }};
  const Side b{[&] { calls += 'b'; }};
  const Paired paired = time_in_turns(a, b, {.least_pairs = 3, .most_pairs = 3, .block_seconds = 0});
  EXPECT_EQ(calls, "a.ba.ba.bba.a.b");  // warm-up, sizing, and three pairs
  EXPECT_EQ(paired.ratio.pairs, 3);
  calls.clear();
  (void)time_in_turns(a, b, {.least_pairs = 3, .block_seconds = 0, .stop = [] { return true; }});
  EXPECT_EQ(calls, "a.ba.ba.b");
}

// Two sides that take known seconds on a clock that only they move.
struct KnownTimes {
  double now = 0;
  int firsts = 0, seconds = 0;
  Paired paired;

  KnownTimes(double first, double second, PairingOptions options) {
    options.now = [this] { return now; };
    const Side a{[&, first] { now += first, ++firsts; }}, b{[&, second] { now += second, ++seconds; }};
    paired = time_in_turns(a, b, options);
  }
};

TEST(Paired, ASideTenTimesSlowerIsDecidedAfterThreePairs) {
  const PairingOptions options{.seconds = 1000, .far = 10, .call_seconds = 20};
  const KnownTimes slow(1, 20, options), fast(20, 1, options), nearly(2, 19.9, options);
  EXPECT_EQ(slow.paired.ratio.pairs, 3);
  EXPECT_EQ(slow.seconds, 3) << "no calls other than the pairs";
  EXPECT_DOUBLE_EQ(slow.paired.ratio.high, 0.05);
  EXPECT_EQ(fast.paired.ratio.pairs, 3);
  EXPECT_EQ(nearly.paired.ratio.pairs, 31);
  EXPECT_EQ(KnownTimes(1, 20, {.least_pairs = 7, .seconds = 0}).paired.ratio.pairs, 7) << "only if `far` is set";
}

TEST(Paired, NoiseDecidesNothingAfterThreePairs) {
  double now = 0;
  int calls = 0;
  const Side a{[&] { now += 1; }};
  const Side b{[&] { now += ++calls == 2 ? 5 : 20; }};  // one of the first pairs disagrees
  const Paired paired =
      time_in_turns(a, b, {.least_pairs = 7, .seconds = 0, .far = 10, .call_seconds = 20, .now = [&] { return now; }});
  EXPECT_EQ(paired.ratio.pairs, 7);
}

}  // namespace
}  // namespace stoker::study

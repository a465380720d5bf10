// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

using ::testing::HasSubstr;
using ::testing::Property;

const Link kSlow{.latency_s = 1e-3, .bytes_per_s = 1e6, .exchange_latency_s = 0};

double sum_seconds(Pattern pattern, int ranks, double bytes) {
  return sum_cost(kSlow, pattern, ranks, bytes).seconds();
}

TEST(Link, OneRankCostsNothing) {
  for (const Pattern pattern : {Pattern::kRing, Pattern::kTree}) {
    EXPECT_EQ(sum_seconds(pattern, 1, 1e9), 0);
    EXPECT_EQ(gather_cost(kSlow, pattern, 1, 1e9).seconds(), 0);
  }
}

TEST(Link, SumsCostWhatTheFormulasSay) {
  EXPECT_DOUBLE_EQ(sum_seconds(Pattern::kRing, 2, 1e6), 2 * (1e-3 + 0.5));
  EXPECT_DOUBLE_EQ(sum_seconds(Pattern::kRing, 4, 1e6), 6 * (1e-3 + 0.25));
  EXPECT_DOUBLE_EQ(sum_seconds(Pattern::kTree, 2, 1e6), 2 * (1e-3 + 1));
  EXPECT_DOUBLE_EQ(sum_seconds(Pattern::kTree, 8, 1e6), 6 * (1e-3 + 1));
  EXPECT_DOUBLE_EQ(sum_seconds(Pattern::kTree, 5, 1e6), 6 * (1e-3 + 1));  // a tree of 5 has as many levels as one of 8
  EXPECT_DOUBLE_EQ(gather_cost(kSlow, Pattern::kRing, 4, 1e6).seconds(), 3 * (1e-3 + 1));
  EXPECT_DOUBLE_EQ(gather_cost(kSlow, Pattern::kTree, 4, 1e6).seconds(), 2 * 1e-3 + 3);
}

TEST(Link, AGatheringHasALatencyOfItsOwn) {
  const Link link{.latency_s = 1e-3, .bytes_per_s = 1e6, .exchange_latency_s = 2e-3};
  EXPECT_DOUBLE_EQ(gather_cost(link, Pattern::kRing, 4, 0).seconds(), 3 * 2e-3);
  EXPECT_DOUBLE_EQ(sum_cost(link, Pattern::kRing, 4, 0).seconds(), 6 * 1e-3);
}

TEST(Link, MoreBytesAndMoreRanksCostMore) {
  for (const Pattern pattern : {Pattern::kRing, Pattern::kTree}) {
    for (int ranks = 2; ranks <= 1024; ranks *= 2) {
      EXPECT_LT(sum_seconds(pattern, ranks, 8), sum_seconds(pattern, ranks, 8000)) << ranks;
      EXPECT_LT(sum_seconds(pattern, ranks / 2, 1e5), sum_seconds(pattern, ranks, 1e5)) << ranks;
      EXPECT_LT(gather_cost(kSlow, pattern, ranks / 2, 40).seconds(), gather_cost(kSlow, pattern, ranks, 40).seconds());
    }
  }
}

TEST(Link, ARingOfManyRanksSendsEachByteTwice) {
  const double transfer = sum_cost(kSlow, Pattern::kRing, 1 << 20, 1e6).transfer_s;
  EXPECT_NEAR(transfer, 2, 1e-5);
}

std::vector<TimedSum> sums_of(const Link& link, int ranks, double off = 0) {
  std::vector<TimedSum> sums;
  double sign = 1;
  for (double bytes = 8; bytes <= 1 << 24; bytes *= 8, sign = -sign) {
    sums.push_back({bytes, sum_cost(link, Pattern::kRing, ranks, bytes).seconds() * (1 + sign * off)});
  }
  return sums;
}

TEST(FitLink, FindsTheLinkThatMadeTheTimes) {
  const Link made{.latency_s = 83e-6, .bytes_per_s = 1.7e9, .exchange_latency_s = 0};
  for (const int ranks : {2, 3, 8}) {
    const Link found = fit_link(sums_of(made, ranks), ranks);
    EXPECT_NEAR(found.latency_s, made.latency_s, 1e-9 * made.latency_s) << ranks;
    EXPECT_NEAR(found.bytes_per_s, made.bytes_per_s, 1e-9 * made.bytes_per_s) << ranks;
  }
}

// If large sums outweighed small ones, an error of theirs would be many latencies.
TEST(FitLink, ErrorsOfLargeSumsLeaveTheLatencyAlone) {
  const Link made{.latency_s = 50e-6, .bytes_per_s = 1e9, .exchange_latency_s = 0};
  const Link found = fit_link(sums_of(made, 2, 0.1), 2);
  EXPECT_NEAR(found.latency_s, made.latency_s, 0.1 * made.latency_s);
  EXPECT_NEAR(found.bytes_per_s, made.bytes_per_s, 0.15 * made.bytes_per_s);
}

TEST(FitLink, NeverGivesNegativeCosts) {
  const std::vector<TimedSum> falling{{8, 2e-3}, {4096, 1e-3}, {1 << 20, 0.5e-3}};
  const Link flat = fit_link(falling, 2);
  EXPECT_NEAR(flat.latency_s, 1e-3 / 3, 1e-12);  // sum(1 / t) / sum(1 / t^2), of two messages
  EXPECT_TRUE(std::isinf(flat.bytes_per_s));
  EXPECT_TRUE(std::isfinite(sum_cost(flat, Pattern::kRing, 64, 1e9).seconds()));
  const std::vector<TimedSum> steep{{1000, 1e-6}, {2000, 1e-3}};
  const Link without_latency = fit_link(steep, 2);
  EXPECT_EQ(without_latency.latency_s, 0);
  EXPECT_GT(without_latency.bytes_per_s, 0);
}

TEST(FitLink, RefusesWhatHoldsNoLink) {
  const std::vector<TimedSum> one{{8, 1e-3}}, same{{8, 1e-3}, {8, 2e-3}}, fine{{8, 1e-3}, {800, 2e-3}},
      zero{{8, 0}, {800, 2e-3}};
  const auto fails_with = [](const std::vector<TimedSum>& sums, int ranks, const char* words) {
    EXPECT_THAT([&] { (void)fit_link(sums, ranks); },
                ::testing::Throws<ConfigError>(Property(&ConfigError::what, HasSubstr(words))));
  };
  fails_with({}, 2, "two sizes");
  fails_with(one, 2, "two sizes");
  fails_with(same, 2, "two sizes");
  fails_with(fine, 1, "two ranks");
  fails_with(zero, 2, "positive");
}

}  // namespace
}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// Draws with replacement equal those of a second implementation in Python. Probabilities are compared with exact ones,
// and frequencies with the weights.
#include "stoker/data/order/weighted_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

using Positions = std::vector<std::int64_t>;

WeightedSampler sampler_of(std::vector<double> weights, std::int64_t draws, std::int64_t batch,
                           std::uint64_t seed = 7) {
  WeightedSamplerOptions options{.draws = draws, .batch = batch, .seed = seed};
  options.weights = std::move(weights);
  return WeightedSampler(options);
}

Positions batch_of(const WeightedSampler& sampler, std::int64_t epoch, std::int64_t step) {
  Positions out;
  sampler.positions(epoch, step, out);
  return out;
}

const std::vector<double> kWeights{0.1, 3.0, 0.0, 1.5, 0.7, 2.25, 0.3};

TEST(WeightedSampler, DrawsWhatASecondImplementationDraws) {  // Philox and Vose's columns in Python's integers
  EXPECT_EQ(batch_of(sampler_of(kWeights, 24, 24), 0, 0),
            (Positions{3, 1, 1, 1, 5, 3, 6, 1, 1, 1, 1, 5, 1, 5, 1, 5, 5, 3, 1, 1, 1, 0, 1, 5}));
  EXPECT_EQ(batch_of(sampler_of(kWeights, 2000, 1000), 3, 1).front(), 1);
  Positions second = batch_of(sampler_of(kWeights, 2000, 1000), 3, 1);
  second.resize(12);
  EXPECT_EQ(second, (Positions{1, 3, 1, 3, 4, 5, 1, 1, 5, 4, 3, 1}));
  EXPECT_EQ(batch_of(sampler_of(kWeights, 12, 12, (std::uint64_t{5} << 32) | 9), 1, 0),
            (Positions{1, 6, 5, 4, 5, 3, 3, 1, 1, 5, 3, 1}));
}

void expect_probabilities(const std::vector<double>& weights) {
  const std::vector<std::uint64_t> units = sampler_of(weights, 1, 1).units();
  const long double sum = std::accumulate(weights.begin(), weights.end(), 0.0L);
  const auto all = static_cast<long double>(weights.size()) * 0x1p32L;
  EXPECT_EQ(std::accumulate(units.begin(), units.end(), std::uint64_t{0}), weights.size() << 32);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    // Off by at most one unit, or, for the largest weight, by the remainder of all roundings.
    EXPECT_NEAR(static_cast<double>(units[i] / all), static_cast<double>(weights[i] / sum), 0x1p-32) << i;
    EXPECT_EQ(units[i] == 0, weights[i] == 0) << i;
  }
}

TEST(WeightedSampler, ProbabilitiesAreTheWeights) {
  expect_probabilities(kWeights);
  expect_probabilities({5});
  expect_probabilities({0, 0, 1, 0});
  expect_probabilities({1, 1, 1});
  expect_probabilities({1, 1e-30, 1e-300, 0, 1e-12});
  expect_probabilities({1e308, 1e308, 5e307});
  expect_probabilities({5e-324, 1e-323});
  std::mt19937 random(2);
  std::vector<double> many(5000);
  for (double& weight : many) {
    weight = std::exp(static_cast<double>(random()) * 0x1p-28);  // e^0 ... e^16
  }
  expect_probabilities(many);
}

// Pearson's chi-square of counts against expectations.
double chi_square(const std::vector<std::int64_t>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double apart = static_cast<double>(counts[i]) - expected[i];
    sum += expected[i] > 0 ? apart * apart / expected[i] : 0;
  }
  return sum;
}

TEST(WeightedSampler, FrequenciesAreTheWeights) {
  constexpr std::int64_t kDraws = 200'000;
  const WeightedSampler sampler = sampler_of(kWeights, kDraws, kDraws, 12);
  const double sum = std::accumulate(kWeights.begin(), kWeights.end(), 0.0);
  std::vector<double> expected;
  for (const double weight : kWeights) {
    expected.push_back(weight / sum * kDraws);
  }
  for (const std::int64_t epoch : {0, 1, 2, 3}) {
    std::vector<std::int64_t> counts(kWeights.size());
    for (const std::int64_t sample : batch_of(sampler, epoch, 0)) {
      ++counts[static_cast<std::size_t>(sample)];
    }
    EXPECT_EQ(counts[2], 0);
    EXPECT_LT(chi_square(counts, expected), 20.5);  // 5 degrees of freedom: a correct sampler exceeds this in 0.1 %
  }
}

TEST(WeightedSampler, DrawsThatFollowEachOtherAreIndependent) {
  constexpr std::int64_t kDraws = 160'000;
  const Positions draws = batch_of(sampler_of({1, 1, 1, 1}, kDraws, kDraws), 0, 0);
  std::vector<std::int64_t> pairs(16);
  for (std::size_t i = 0; i + 1 < draws.size(); i += 2) {
    ++pairs[static_cast<std::size_t>(draws[i] * 4 + draws[i + 1])];
  }
  EXPECT_LT(chi_square(pairs, std::vector<double>(16, kDraws / 2.0 / 16)), 37.7);  // 15 degrees of freedom, 0.1 %
}

TEST(WeightedSampler, BalancedWeightsGiveEveryClassTheSame) {
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 3000; ++i) {
    labels.push_back(i < 2900 ? 4 : i < 2990 ? 0 : 9);  // 2900, 90 and 10 samples
  }
  const std::vector<double> weights = balanced_weights(LabelList::of(labels));
  expect_probabilities(weights);
  constexpr std::int64_t kDraws = 60'000;
  const WeightedSampler sampler = sampler_of(weights, kDraws, kDraws);
  std::vector<std::int64_t> classes(10), of_nine(10);
  for (const std::int64_t sample : batch_of(sampler, 0, 0)) {
    ++classes[static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)])];
    if (sample >= 2990) {
      ++of_nine[static_cast<std::size_t>(sample - 2990)];
    }
  }
  std::vector<double> expected(10);
  expected[0] = expected[4] = expected[9] = kDraws / 3.0;
  EXPECT_LT(chi_square(classes, expected), 13.8);                                // 2 degrees of freedom, 0.1 %
  EXPECT_LT(chi_square(of_nine, std::vector<double>(10, kDraws / 30.0)), 27.9);  // 9 degrees of freedom
  EXPECT_EQ(std::accumulate(classes.begin(), classes.end(), std::int64_t{0}), kDraws);
}

TEST(WeightedSampler, AnEpochIsAsLongAsThereAreSamplesUnlessAsked) {
  EXPECT_EQ(sampler_of(kWeights, 0, 2).steps_per_epoch(), 4);
  EXPECT_EQ(sampler_of(kWeights, 0, 2).global_size(5, 3), 1);
  EXPECT_EQ(sampler_of(kWeights, 100, 2).steps_per_epoch(), 50);
  EXPECT_EQ(sampler_of(kWeights, 0, 2).samples(), 7);
}

TEST(WeightedSampler, RefusesWhatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& weights :
       {std::vector<double>{}, {0, 0}, {1, -1}, {1, nan}, {1, inf}, {-0.5}, {inf, inf}}) {
    EXPECT_THROW((void)sampler_of(weights, 10, 1), ConfigError);
  }
  EXPECT_THROW((void)sampler_of({1}, -1, 1), ConfigError);
  EXPECT_THROW((void)sampler_of({1}, BatchOrder::kMostDraws + 1, 1), ConfigError);
  EXPECT_THROW((void)sampler_of({1}, 10, 0), ConfigError);
}

}  // namespace
}  // namespace stoker::data

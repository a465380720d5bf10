// SPDX-License-Identifier: Apache-2.0
// recompute=auto picks the set with the least time that fits, and passes that do not behave as predicted correct it.
#include "stoker/memory/recompute_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace stoker::memory {
namespace {

using Costs = std::vector<SegmentCost>;

SegmentCost cost(std::string name, std::int64_t saved, std::int64_t output, double seconds) {
  return {.name = std::move(name), .saved_bytes = saved, .output_bytes = output, .seconds = seconds};
}

// Bytes in whole numbers that are small, so that nothing is rounded; seconds that add up exactly.
Costs random_costs(std::mt19937& random, int segments) {
  Costs costs;
  for (int i = 0; i < segments; ++i) {
    costs.push_back(cost(std::to_string(i), random() % 50, random() % 10, static_cast<double>(random() % 64) / 64));
  }
  return costs;
}

RecomputeSet set_of(unsigned bits, std::size_t segments) {
  RecomputeSet set(segments);
  for (std::size_t i = 0; i < segments; ++i) {
    set[i] = (bits >> i & 1U) != 0;
  }
  return set;
}

// The least seconds of all subsets that fit; infinity if none does.
double by_brute_force(const Costs& costs, std::int64_t most) {
  double least = std::numeric_limits<double>::infinity();
  for (unsigned bits = 0; bits < 1U << costs.size(); ++bits) {
    const RecomputeSet set = set_of(bits, costs.size());
    if (activation_peak(costs, set) <= most) {
      least = std::min(least, added_seconds(costs, set));
    }
  }
  return least;
}

TEST(RecomputeSearch, ThePeakIsWhereBackwardNeedsMost) {
  const Costs costs = {cost("a", 100, 10, 1), cost("b", 50, 10, 1), cost("c", 20, 10, 1)};
  EXPECT_EQ(activation_peak(costs, {false, false, false}), 200) << "at its begin: all that is saved, and the outputs";
  EXPECT_EQ(activation_peak(costs, {true, false, false}), 110) << "at its end: the first segment is there again";
  EXPECT_EQ(activation_peak(costs, {false, true, false}), 170) << "in the second one, which is there again";
  EXPECT_EQ(activation_peak(costs, {false, false, true}), 200) << "the last one is needed at once";
}

TEST(RecomputeSearch, TheChoiceIsThatOfBruteForce) {
  std::mt19937 random(3);
  int some = 0;
  for (int round = 0; round < 60; ++round) {
    const Costs costs = random_costs(random, 1 + round % 9);
    const std::int64_t plain = activation_peak(costs, RecomputeSet(costs.size(), false));
    for (std::int64_t most = 0; most <= plain; most += 1 + plain / 40) {
      const RecomputeSet set = least_recomputation(costs, most);
      const double least = by_brute_force(costs, most);
      if (least == std::numeric_limits<double>::infinity()) {
        EXPECT_EQ(set, RecomputeSet(costs.size(), true));
        continue;
      }
      EXPECT_LE(activation_peak(costs, set), most);
      EXPECT_EQ(added_seconds(costs, set), least) << most << " of " << plain;
      some += least > 0 ? 1 : 0;
    }
    EXPECT_EQ(recompute_text(costs, least_recomputation(costs, plain)), "none");
  }
  EXPECT_GT(some, 300) << "hardly ever a choice, so the comparison proves little";
}

TEST(RecomputeSearch, ManyLargeSegmentsAreCountedInUnits) {
  Costs costs;
  for (int i = 0; i < 200; ++i) {
    costs.push_back(cost(std::to_string(i), (std::int64_t{1} << 30) + i, 1 << 20, 0.01 * (1 + i % 3)));
  }
  const std::int64_t most = activation_peak(costs, RecomputeSet(200, false)) / 2;
  const RecomputeSet set = least_recomputation(costs, most);
  EXPECT_LE(activation_peak(costs, set), most);
  // Half of them: the third that takes 0.01 s, and a sixth at 0.02 s.
  EXPECT_NEAR(added_seconds(costs, set), 67 * 0.01 + 33 * 0.02, 0.06);
}

TEST(RecomputeSearch, TextIsWhatTheOptionTakes) {
  const Costs costs = {cost("stem", 1, 1, 1), cost("layer1.0", 1, 1, 1), cost("head", 1, 1, 1)};
  EXPECT_EQ(recompute_text(costs, {false, false, false}), "none");
  EXPECT_EQ(recompute_text(costs, {true, true, false}), "stem,layer1.0");
  EXPECT_EQ(recompute_text(costs, {true, true, true}), "all");
}

// A device on which a pass needs what the model says and `others`; one that fails tells its bytes only if asked to.
struct Device {
  Costs costs;
  std::int64_t limit = 0, others = 0;
  bool tells = false;
  int probes = 0;
  RecomputeSet last = {};
  RecomputeProbe operator()(const RecomputeSet& set) {
    ++probes;
    last = set;
    const std::int64_t bytes = activation_peak(costs, set) + others;
    const bool fits = bytes <= limit;
    return {.fits = fits, .bytes = fits || tells ? bytes : -1, .seconds = fits ? 3 + added_seconds(costs, set) : 0};
  }
};

TEST(RecomputeSearch, AWrongEstimateIsCorrectedByProbes) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Device device{.costs = random_costs(random, 8), .others = static_cast<std::int64_t>(random() % 60)};
    device.tells = round % 2 == 0;
    const std::int64_t plain = activation_peak(device.costs, RecomputeSet(8, false));
    const std::int64_t all = activation_peak(device.costs, RecomputeSet(8, true));
    if (plain - all < 20) {
      continue;
    }
    device.limit = device.others + all + (plain - all) / 2;
    for (const double error : {0.0, 0.5, 2.0}) {
      device.probes = 0;
      const RecomputeFound found =
          find_recomputation(device.costs, std::ref(device),
                             {.limit = device.limit,
                              .others = static_cast<std::int64_t>(error * static_cast<double>(device.others)),
                              .margin = 0});
      EXPECT_LE(device.probes, 6);
      EXPECT_EQ(found.probes, device.probes);
      ASSERT_TRUE(found.probe.fits);
      EXPECT_EQ(found.probe.bytes, activation_peak(device.costs, found.set) + device.others);
      if (device.tells) {
        EXPECT_EQ(added_seconds(device.costs, found.set), by_brute_force(device.costs, device.limit - device.others));
        EXPECT_EQ(found.kept_bytes, plain + device.others);
      }
    }
  }
}

TEST(RecomputeSearch, EndsWithAllWhereNothingElseFits) {
  Device device{.costs = {cost("a", 100, 10, 1), cost("b", 100, 10, 2), cost("c", 100, 10, 3)}};
  for (const std::int64_t limit : {130, 100}) {  // all of them need 130
    for (const double step : {0.0, 100.0}) {     // seconds between two looks at the clock
      device.limit = limit;
      double now = 0;
      const RecomputeFound found =
          find_recomputation(device.costs, std::ref(device), {.limit = limit, .now = [&] { return now += step; }});
      EXPECT_EQ(found.set, RecomputeSet(3, true));
      EXPECT_EQ(device.last, RecomputeSet(3, true));
      EXPECT_EQ(found.probe.fits, limit == 130);
    }
  }
}

TEST(RecomputeSearch, APoorTradeIsTold) {
  const Costs costs = {cost("cheap", 600, 0, 0.1), cost("dear", 30, 0, 0.3), cost("head", 300, 0, 0.2)};
  const auto trade = [&](RecomputeSet set, std::int64_t bytes, double seconds) {
    return trade_of(costs, {.set = std::move(set), .probe = {true, bytes, seconds}, .probes = 1, .kept_bytes = 1000});
  };
  const RecomputeTrade cheap = trade({true, false, false}, 400, 1.1);
  EXPECT_EQ(cheap.less, 600);
  EXPECT_NEAR(cheap.slower, 0.1, 1e-12);
  EXPECT_FALSE(cheap.poor);
  const RecomputeTrade dear = trade({false, true, false}, 970, 1.3);  // 3 % less, 30 % slower
  EXPECT_NEAR(dear.slower, 0.3, 1e-12);
  EXPECT_TRUE(dear.poor);
  EXPECT_FALSE(trade({false, true, false}, 840, 1.3).poor);
  const RecomputeTrade none = trade({false, false, false}, 1000, 0);
  EXPECT_EQ(none.slower, 0);
  EXPECT_FALSE(none.poor);
}

}  // namespace
}  // namespace stoker::memory

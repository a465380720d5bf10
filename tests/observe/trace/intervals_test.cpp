// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/intervals.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace stoker::observe::trace {
namespace {

constexpr std::int64_t kEnd = 200;
using Points = std::bitset<kEnd>;

Points points_of(const std::vector<Interval>& intervals) {
  Points points;
  for (const Interval& each : intervals) {
    for (std::int64_t at = each.begin; at < each.end; ++at) {
      points.set(static_cast<std::size_t>(at));
    }
  }
  return points;
}

// Sorted, disjoint, none empty, none touching.
bool is_canonical(const Intervals& set) {
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i].begin >= set[i].end || (i > 0 && set[i - 1].end >= set[i].begin)) {
      return false;
    }
  }
  return true;
}

TEST(Intervals, EqualSetsOfPoints) {
  std::mt19937 random(2);
  const auto draw = [&] {
    std::vector<Interval> intervals(random() % 12);
    for (Interval& each : intervals) {
      each.begin = random() % kEnd;
      each.end = std::min<std::int64_t>(kEnd, each.begin + random() % 30);
    }
    return intervals;
  };
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Interval> some = draw(), others = draw();
    const Intervals a = united(some), b = united(others);
    ASSERT_TRUE(is_canonical(a));
    ASSERT_EQ(points_of(a), points_of(some));
    ASSERT_EQ(length(a), static_cast<std::int64_t>(points_of(some).count()));
    ASSERT_EQ(points_of(common(a, b)), points_of(a) & points_of(b));
    ASSERT_EQ(points_of(without(a, b)), points_of(a) & ~points_of(b));
    ASSERT_EQ(length(common(a, b)) + length(without(a, b)), length(a));
  }
}

}  // namespace
}  // namespace stoker::observe::trace

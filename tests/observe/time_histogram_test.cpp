// SPDX-License-Identifier: Apache-2.0
// Quantiles from bins against the sorted durations.
#include "stoker/observe/anatomy/time_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace stoker::observe {
namespace {

TEST(TimeHistogram, QuantilesAreThoseOfTheSortedDurations) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> draw(-7, 3);  // from microseconds to minutes
  TimeHistogram histogram;
  std::vector<double> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(draw(random));
    histogram.add(all.back());
  }
  std::ranges::sort(all);
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact = all[static_cast<std::size_t>(std::ceil(share * 20'000)) - 1];
    EXPECT_NEAR(histogram.quantile(share), exact, 0.016 * exact + 1e-9) << share;
  }
}

TEST(TimeHistogram, TakesAnyNumber) {
  TimeHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), -1) << "nothing is missing, not 0";
  for (const double seconds : {0.0, -1.0, std::nan(""), 1e-9, 31e-9, 32e-9, 8e3, 1e300, double{INFINITY}}) {
    histogram.add(seconds);
  }
  EXPECT_EQ(histogram.count(), 9);
  EXPECT_EQ(histogram.quantile(0), 0);
  EXPECT_NEAR(histogram.quantile(1), 8000, 130);
  histogram.clear();
  EXPECT_EQ(histogram.quantile(0.5), -1);
}

}  // namespace
}  // namespace stoker::observe

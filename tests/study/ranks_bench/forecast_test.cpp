// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/forecast.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::study {
namespace {

using Kind = Call::Kind;

const Link kLink{.latency_s = 1e-3, .bytes_per_s = 1e6, .exchange_latency_s = 0};

double ring(const Course& course, int ranks) { return forecast(course, kLink, Pattern::kRing, ranks).seconds; }
double sum_s(double bytes, int ranks = 2) { return sum_cost(kLink, Pattern::kRing, ranks, bytes).seconds(); }

// A message, two sums beside backward, and waiting for both.
const Course kStep{.seconds = 0.1,
                   .calls = {{Kind::kGather, 0, 40},
                             {Kind::kStart, 0.05, 20'000},
                             {Kind::kStart, 0.08, 20'000},
                             {Kind::kWait, 0.08, 0, 0},
                             {Kind::kWait, 0.08, 0, 1}}};

TEST(Forecast, OneRankCommunicatesNothing) {
  const Forecast one = forecast(kStep, kLink, Pattern::kRing, 1);
  EXPECT_EQ(one.seconds, kStep.seconds);
  EXPECT_EQ(one.communication_s, 0);
  EXPECT_EQ(one.exposed_s, 0);
}

TEST(Forecast, AStepWithoutCallsStaysAsItIs) { EXPECT_EQ(ring({.seconds = 0.3, .calls = {}}, 64), 0.3); }

TEST(Forecast, WhatIsWaitedForAddsItsTime) {
  const Course course{.seconds = 0.1, .calls = {{Kind::kSum, 0.02, 5000}, {Kind::kGather, 0.03, 40}}};
  EXPECT_DOUBLE_EQ(ring(course, 2), 0.1 + sum_s(5000) + gather_cost(kLink, Pattern::kRing, 2, 40).seconds());
}

TEST(Forecast, ASumThatEndsBeforeItIsWaitedForIsHidden) {
  const Course course{.seconds = 0.1, .calls = {{Kind::kStart, 0.01, 5000}, {Kind::kWait, 0.09, 0, 0}}};
  ASSERT_LT(sum_s(5000), 0.08);
  const Forecast two = forecast(course, kLink, Pattern::kRing, 2);
  EXPECT_EQ(two.exposed_s, 0);
  EXPECT_DOUBLE_EQ(two.communication_s, sum_s(5000));
}

TEST(Forecast, OfALongerSumTheRestIsExposed) {
  const Course course{.seconds = 0.1, .calls = {{Kind::kStart, 0.01, 1e6}, {Kind::kWait, 0.09, 0, 0}}};
  EXPECT_DOUBLE_EQ(forecast(course, kLink, Pattern::kRing, 2).exposed_s, sum_s(1e6) - 0.08);
}

TEST(Forecast, BytesOfTwoSumsTakeTurnsAndTheirLatenciesOverlap) {
  const Course course{
      .seconds = 0.1,
      .calls = {{Kind::kStart, 0, 1e6}, {Kind::kStart, 0, 1e6}, {Kind::kWait, 0, 0, 0}, {Kind::kWait, 0, 0, 1}}};
  EXPECT_DOUBLE_EQ(forecast(course, kLink, Pattern::kRing, 2).exposed_s, 2 * sum_s(1e6) - 2e-3);
}

TEST(Forecast, AThirdSumWaitsForOneOfTwoThreads) {
  const Course course{.seconds = 0.1,
                      .calls = {{Kind::kStart, 0, 0},
                                {Kind::kStart, 0, 0},
                                {Kind::kStart, 0, 0},
                                {Kind::kWait, 0, 0, 0},
                                {Kind::kWait, 0, 0, 1},
                                {Kind::kWait, 0, 0, 2}}};
  EXPECT_DOUBLE_EQ(forecast(course, kLink, Pattern::kRing, 2).exposed_s, 2 * sum_s(0));
}

TEST(Forecast, ADelayMovesWhatFollows) {
  const Course course{.seconds = 0.1,
                      .calls = {{Kind::kGather, 0, 1e5}, {Kind::kStart, 0.01, 5000}, {Kind::kWait, 0.09, 0, 0}}};
  // The message takes longer than the window, which moves with it.
  EXPECT_DOUBLE_EQ(ring(course, 2), 0.1 + gather_cost(kLink, Pattern::kRing, 2, 1e5).seconds());
}

TEST(Forecast, MoreRanksAndMoreBytesNeverTakeLess) {
  Course larger = kStep;
  for (Call& call : larger.calls) {
    call.bytes *= 10;
  }
  double before = kStep.seconds;
  for (int ranks = 2; ranks <= 1024; ranks *= 2) {
    const double step = best_forecast(kStep, kLink, ranks).seconds;
    EXPECT_GE(step, before) << ranks;
    EXPECT_GT(best_forecast(larger, kLink, ranks).seconds, step) << ranks;
    before = step;
  }
}

TEST(BestForecast, IsATreeForManyLatenciesAndARingForManyBytes) {
  const Course small{.seconds = 0.1, .calls = {{Kind::kSum, 0.1, 8}}},
      large{.seconds = 0.1, .calls = {{Kind::kSum, 0.1, 1e8}}};
  EXPECT_EQ(best_forecast(small, kLink, 1024).pattern, Pattern::kTree);
  EXPECT_EQ(best_forecast(large, kLink, 8).pattern, Pattern::kRing);
  for (const Course& course : {small, large}) {
    for (const Pattern pattern : {Pattern::kRing, Pattern::kTree}) {
      EXPECT_LE(best_forecast(course, kLink, 64).seconds, forecast(course, kLink, pattern, 64).seconds);
    }
  }
}

TEST(Forecast, RefusesToWaitForASumThatNobodyStarted) {
  const Course course{.seconds = 1, .calls = {{Kind::kWait, 0, 0, 0}}};
  EXPECT_THROW((void)ring(course, 2), ConfigError);
}

}  // namespace
}  // namespace stoker::study

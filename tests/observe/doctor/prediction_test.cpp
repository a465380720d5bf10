// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/prediction.h"

#include <gtest/gtest.h>

namespace stoker::observe::doctor {
namespace {

std::vector<Period> periods(std::initializer_list<std::pair<double, double>> seconds_and_fetch) {
  std::vector<Period> all;
  for (const auto& [seconds, fetch] : seconds_and_fetch) {
    all.push_back({.last_step = 10 * static_cast<std::int64_t>(all.size() + 1),
                   .steps = 10,
                   .seconds = seconds,
                   .parts = {{"fetch", {fetch, 0}}},
                   .loader = {}});
  }
  return all;
}

double fetch(const Period& period) { return period.part("fetch"); }

TEST(Prediction, EqualPeriodsGiveAnExactSpeedup) {
  const Prediction half = predict(periods({{2, 1}, {2, 1}, {2, 1}}), fetch, {.low = 1, .high = 1});
  EXPECT_DOUBLE_EQ(half.speedup, 2);
  EXPECT_DOUBLE_EQ(half.low, 2);
  EXPECT_DOUBLE_EQ(half.high, 2);
}

TEST(Prediction, TheReachWidensTheInterval) {
  const Prediction wide = predict(periods({{2, 1}, {2, 1}}), fetch, {.low = 0.5, .high = 1});
  EXPECT_DOUBLE_EQ(wide.low, 2 / 1.5);
  EXPECT_DOUBLE_EQ(wide.speedup, 2 / 1.25);
  EXPECT_DOUBLE_EQ(wide.high, 2);
}

TEST(Prediction, PeriodsThatDifferWidenTheInterval) {
  const Reach sure{.low = 1, .high = 1};
  const Prediction uneven = predict(periods({{2, 0}, {2, 1.6}, {2, 0.2}, {2, 1.4}}), fetch, sure);
  EXPECT_DOUBLE_EQ(uneven.speedup, 8 / 4.8);
  EXPECT_LT(uneven.low, 1.5);
  EXPECT_GT(uneven.high, 1.9);
}

TEST(Prediction, NothingIsEverSavedWhole) {
  const Prediction all = predict(periods({{2, 5}}), fetch, {.low = 1, .high = 1});
  EXPECT_NEAR(all.speedup, 50, 1e-9);
  const Prediction none = predict(periods({{2, -5}}), fetch);
  EXPECT_DOUBLE_EQ(none.high, 1);
  EXPECT_DOUBLE_EQ(predict({}, fetch).speedup, 1);
}

TEST(Prediction, TheSamePeriodsGiveTheSameInterval) {
  const auto records = periods({{2, 0}, {3, 1.6}, {2, 0.2}});
  EXPECT_EQ(predict(records, fetch).low, predict(records, fetch).low);
}

}  // namespace
}  // namespace stoker::observe::doctor

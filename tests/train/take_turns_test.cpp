// SPDX-License-Identifier: Apache-2.0
// The timed functions return how long they took.
#include "stoker/train/take_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace stoker::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr double kNeverTooSlow = std::numeric_limits<double>::infinity();

// The seconds of each function's goes; the last value repeats.
struct Scripted {
  std::vector<std::vector<double>> seconds;
  std::vector<std::size_t> goes = std::vector<std::size_t>(seconds.size());
  double operator()(std::size_t i) { return seconds[i][std::min(goes[i]++, seconds[i].size() - 1)]; }
};

// On a GPU the very first go includes starting libraries and cuDNN's search.
TEST(TakeTurns, TheFirstGoIsNotCounted) {
  Scripted steps{.seconds = {{30, 0.01}, {2, 0.02}}};
  EXPECT_THAT(take_turns(2, std::ref(steps), kNeverTooSlow), ElementsAre(0.01, 0.02));
  EXPECT_EQ(steps.goes[0], steps.goes[1]);
}

TEST(TakeTurns, WhatIsFarTooSlowHasOneGo) {
  Scripted steps{.seconds = {{0.3, 0.01}, {0.5, 0.01}}};
  EXPECT_THAT(take_turns(2, std::ref(steps), 0.4), ElementsAre(0.01, 0.5));
  EXPECT_EQ(steps.goes[1], 1U);
}

TEST(TakeTurns, LongGoesAreFew) {
  Scripted quick{.seconds = {{1e-3}}}, slow{.seconds = {{0.1}}};
  (void)take_turns(1, std::ref(quick), kNeverTooSlow);
  (void)take_turns(1, std::ref(slow), kNeverTooSlow);
  EXPECT_EQ(quick.goes[0], 10U);
  EXPECT_EQ(slow.goes[0], 3U);
}

// Another program slows down every third go: that counts. A single slow go does not.
TEST(TakeTurns, WhatIsOftenSlowIsSlow) {
  Scripted steps{
      .seconds = {{1e-3, 1e-3, 1e-3, 1e-2, 1e-3, 1e-3, 1e-2, 1e-3, 1e-3, 1e-2}, {2e-3, 2e-3, 2e-3, 2e-2, 2e-3}}};
  EXPECT_THAT(take_turns(2, std::ref(steps), kNeverTooSlow), ElementsAre(1e-2, 2e-3));
}

TEST(TakeTurns, TheOrderTurnsRound) {
  std::vector<std::size_t> order;
  (void)take_turns(
      3,
      [&](std::size_t i) {
        order.push_back(i);
        return 1.0;
      },
      kNeverTooSlow);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 0, 1, 2, 2, 1, 0));
}

}  // namespace
}  // namespace stoker::train

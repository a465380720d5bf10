// SPDX-License-Identifier: Apache-2.0
// Growth is found within 100 steps, with its rate and its origin; 20 clean runs of 500 steps raise no alarm, although
// they warm up, evaluate, save and hold batches of different sizes.
#include "stoker/memory/leak_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stoker/base/philox.h"

namespace stoker::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A number below `below` that depends on run and step only.
std::int64_t draw(std::uint32_t run, std::int64_t step, std::int64_t below) {
  return philox4x32({static_cast<std::uint32_t>(step), 0, 0, 0}, {run, 17})[0] % below;
}

struct Disturbed {
  std::int64_t every = 0;  // steps; 0: never
};

// The step at which growth is found first; 0: never.
std::int64_t found_at(std::int64_t steps, Disturbed disturbed, const std::function<std::int64_t(std::int64_t)>& held,
                      Growth* growth = nullptr) {
  LeakWatch watch;
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (const auto found = watch.add(step, held(step))) {
      if (growth != nullptr) {
        *growth = *found;
      }
      return step;
    }
    if (disturbed.every > 0 && step % disturbed.every == 0) {
      watch.disturbed();
    }
  }
  return 0;
}

TEST(LeakWatch, FindsAMebibytePerStepWithinAHundredSteps) {
  Growth growth;
  const std::int64_t step = found_at(
      100, {}, [](std::int64_t at) { return 500 * kMiB + at * kMiB; }, &growth);
  EXPECT_GT(step, 0);
  EXPECT_DOUBLE_EQ(growth.bytes, kMiB);
  EXPECT_DOUBLE_EQ(growth.low, kMiB);
  EXPECT_DOUBLE_EQ(growth.high, kMiB);
}

TEST(LeakWatch, FindsItInNoiseAndBetweenEvaluations) {
  for (const std::int64_t every : {0, 10, 33}) {
    for (std::uint32_t run = 0; run < 20; ++run) {
      Growth growth;
      const auto held = [&](std::int64_t at) { return 500 * kMiB + at * kMiB + draw(run, at, 4) * kMiB; };
      // An evaluation takes two steps out of the comparison.
      const std::int64_t steps = every == 10 ? 110 : 100;
      EXPECT_GT(found_at(steps, {every}, held, &growth), 0) << every << " " << run;
      EXPECT_LE(growth.low, growth.bytes);
      EXPECT_LE(growth.bytes, growth.high);
      EXPECT_NEAR(growth.bytes, kMiB, 0.5 * kMiB);
    }
  }
}

// Between evaluations that are five steps apart, three values are left to compare.
TEST(LeakWatch, FindsItBetweenFrequentEvaluations) {
  EXPECT_GT(found_at(150, {5}, [](std::int64_t at) { return 500 * kMiB + at * kMiB + at / 5 * kMiB; }), 0);
}

// As on a machine whose loader keeps the queue half full.
TEST(LeakWatch, FindsItBesideAWanderingQueue) {
  for (std::uint32_t run = 0; run < 20; ++run) {
    std::int64_t queued = 4;
    EXPECT_GT(found_at(160, {},
                       [&](std::int64_t at) {
                         queued = std::clamp<std::int64_t>(queued + draw(run, at, 3) - 1, 0, 8);
                         return 500 * kMiB + queued * kMiB + at * kMiB;
                       }),
              0)
        << run;
  }
}

TEST(LeakWatch, FindsWhatGrowsOnlyNowAndThen) {
  EXPECT_GT(found_at(160, {}, [](std::int64_t at) { return 500 * kMiB + at / 4 * kMiB; }), 0);
}

TEST(LeakWatch, CleanRunsRaiseNoAlarm) {
  for (std::uint32_t run = 0; run < 20; ++run) {
    const bool jumps = run % 4 == 0, warms = run % 2 == 0, noisy = run % 3 == 0;
    const auto held = [&](std::int64_t at) {
      double bytes = 500 * kMiB;
      bytes += warms ? 90 * kMiB * (1 - std::exp(-static_cast<double>(at) / 20)) : 0;  // caches fill
      bytes += jumps ? at / 50 * kMiB : 0;                                             // each evaluation adds
      bytes += noisy ? draw(run, at, 6) * kMiB : 0;                                    // batches of other sizes
      return static_cast<std::int64_t>(bytes);
    };
    EXPECT_EQ(found_at(500, {50}, held), 0) << run;
  }
}

// Each step that follows is as high as the one before, so only the comparison within stretches sees no growth.
TEST(LeakWatch, AGrowingEvaluationIsNoGrowthOfSteps) {
  EXPECT_EQ(found_at(500, {8}, [](std::int64_t at) { return 500 * kMiB + (at - 1) / 8 * 8 * kMiB; }), 0);
}

TEST(LeakWatch, ACacheThatFillsMoreAndMoreSlowlyIsNoLeak) {
  for (const double steps : {10, 20, 40}) {
    const auto held = [&](std::int64_t at) {
      return static_cast<std::int64_t>(500 * kMiB + 90 * kMiB * (1 - std::exp(-static_cast<double>(at) / steps)));
    };
    EXPECT_EQ(found_at(500, {}, held), 0) << steps;
  }
}

// A ring of batches that fills and empties with the speed of the loader: neighbours are alike.
TEST(LeakWatch, AWanderingQueueIsNoLeak) {
  int alarms = 0;
  for (std::uint32_t run = 0; run < 20; ++run) {
    std::int64_t queued = 4;
    alarms += found_at(500, {100}, [&](std::int64_t at) {
                queued = std::clamp<std::int64_t>(queued + draw(run, at, 3) - 1, 0, 8);
                return 500 * kMiB + queued * kMiB;
              }) > 0;
  }
  EXPECT_EQ(alarms, 0);
}

TEST(LeakWatch, TheOriginIsWhatStaysFromEarlierSteps) {
  const Growth growth{.bytes = kMiB, .low = kMiB, .high = kMiB, .first = 9, .last = 73};
  device::BytesByAge ages{};
  EXPECT_FALSE(origin_of(growth, ages));
  for (std::size_t age = 0; age < 72; ++age) {
    ages[age][static_cast<std::size_t>(core::Phase::kForward)] = kMiB;
    ages[age][static_cast<std::size_t>(core::Phase::kInput)] = 1000;
  }
  const auto origin = origin_of(growth, ages);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->phase, core::Phase::kForward);
  EXPECT_EQ(origin->oldest, 71);
}

TEST(LeakWatch, ACacheThatIsFullIsNoOrigin) {
  const Growth growth{.bytes = kMiB, .low = kMiB, .high = kMiB, .first = 9, .last = 73};
  device::BytesByAge ages{};
  for (std::size_t age = 14; age < 72; ++age) {
    ages[age][static_cast<std::size_t>(core::Phase::kForward)] = kMiB;
  }
  EXPECT_FALSE(origin_of(growth, ages));
}

// A queue that has just grown: its batches are all young.
TEST(LeakWatch, YoungBlocksAreNoOrigin) {
  const Growth growth{.bytes = kMiB, .low = kMiB, .high = kMiB, .first = 9, .last = 73};
  device::BytesByAge ages{};
  for (std::size_t age = 0; age < 12; ++age) {
    ages[age][static_cast<std::size_t>(core::Phase::kInput)] = 20 * kMiB;
  }
  EXPECT_FALSE(origin_of(growth, ages));
}

}  // namespace
}  // namespace stoker::memory

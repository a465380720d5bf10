// SPDX-License-Identifier: Apache-2.0
// The search for the best number of samples per pass, against made-up devices: linear memory, memory in steps, errors
// without figures, noise, slow steps. Each device knows the true answer.
#include "stoker/memory/batch_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

namespace stoker::memory {
namespace {

using ::testing::HasSubstr;

// A device with a clock of its own.
class MadeUp final : public Prober {
 public:
  std::function<double(double samples)> bytes = [](double samples) { return 1000 + 100 * samples; };
  std::function<double(double samples)> seconds = [](double samples) { return 1e-3 + 1e-5 * samples; };
  double limit = 1e9;
  bool figures_of_fits = true, figures_of_failures = false;
  double now = 0;
  std::vector<std::int64_t> asked;

  Probe probe(std::int64_t samples) override {
    asked.push_back(samples);
    const auto size = static_cast<double>(samples);
    Probe result{.samples = samples, .fits = bytes(size) <= limit};
    result.bytes = (result.fits ? figures_of_fits : figures_of_failures) ? static_cast<std::int64_t>(bytes(size)) : -1;
    result.seconds = result.fits ? seconds(size) : 0;
    now += 2 * seconds(size);
    return result;
  }
  [[nodiscard]] FinderOptions options(std::int64_t most, std::int64_t smallest = 1) {
    FinderOptions result{.smallest = smallest, .most = most};
    result.limit = figures_of_fits ? static_cast<std::int64_t>(limit) : -1;
    result.now = [this] { return now; };
    return result;
  }
  [[nodiscard]] std::int64_t true_most(std::int64_t most) const {
    std::int64_t low = 0, high = most;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (bytes(static_cast<double>(middle)) <= limit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

// What holds for every search.
void expect_sound(const Found& found, const MadeUp& device, const FinderOptions& options) {
  ASSERT_LE(device.asked.size(), static_cast<std::size_t>(options.probes));
  EXPECT_EQ(std::set(device.asked.begin(), device.asked.end()).size(), found.probes.size());
  EXPECT_LE(device.asked.size(), found.probes.size() + 1) << "only the largest is probed twice";
  bool verified = found.largest == 0;
  for (const Probe& each : found.probes) {
    EXPECT_GE(each.samples, options.smallest);
    EXPECT_LE(each.samples, std::max(options.most, options.smallest));
    verified = verified || (each.fits && each.samples == found.largest);
  }
  EXPECT_TRUE(verified) << found.largest;
  EXPECT_LE(found.chosen, found.largest);
  EXPECT_LE(found.fastest, found.largest);
  EXPECT_GE(found.chosen, found.largest == 0 ? 0 : options.smallest);
  EXPECT_FALSE(found.largest_reason.empty());
}

TEST(BatchFinder, FindsTheMostThatFitsWhereMemoryIsLinear) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    MadeUp device;
    const double fixed = std::exp(std::uniform_real_distribution(0.0, 20.0)(random));
    const double each = std::exp(std::uniform_real_distribution(3.0, 18.0)(random));
    device.bytes = [=](double samples) { return fixed + each * samples; };
    device.limit = fixed + each * std::exp(std::uniform_real_distribution(0.0, 12.0)(random));
    device.figures_of_failures = i % 2 == 0;
    const std::int64_t most = std::int64_t{1} << (i % 21);
    const std::int64_t smallest = i % 3 == 0 ? 2 : 1;
    FinderOptions options = device.options(most, smallest);
    options.seconds = 1e9;
    const Found found = find_batch(device, options);
    expect_sound(found, device, options);
    const std::int64_t best = device.true_most(std::max(most, smallest));
    if (best < smallest) {
      EXPECT_EQ(found.largest, 0);
      EXPECT_THAT(found.largest_reason, HasSubstr("not even"));
      continue;
    }
    EXPECT_GE(static_cast<double>(found.largest), 0.95 * static_cast<double>(best) - (best < 40 ? 1 : 0))
        << i << ": " << best << " fit; asked " << ::testing::PrintToString(device.asked);
  }
}

TEST(BatchFinder, ComesCloseWhereMemoryRisesInSteps) {
  for (double step = 1; step <= 16; step *= 2) {
    MadeUp device;
    device.bytes = [=](double samples) { return 1e4 + 1e3 * step * std::ceil(samples / step); };
    device.limit = 2e6;
    const FinderOptions options = device.options(1 << 20);
    const Found found = find_batch(device, options);
    expect_sound(found, device, options);
    EXPECT_GE(static_cast<double>(found.largest),
              (step < 5 ? 0.95 : 0.8) * static_cast<double>(device.true_most(1 << 20)))
        << step << ": " << ::testing::PrintToString(device.asked);
  }
}

// Large passes need a workspace that small ones do not: the line through small ones promises too much.
TEST(BatchFinder, RecoversFromALineThatPromisesTooMuch) {
  for (const bool figures : {false, true}) {
    MadeUp device;
    device.bytes = [](double samples) { return 1e4 + 1e3 * samples + std::max(0.0, samples - 300) * 1e3; };
    device.limit = 1e6;
    device.figures_of_failures = figures;
    const FinderOptions options = device.options(1 << 20);
    const Found found = find_batch(device, options);
    expect_sound(found, device, options);
    EXPECT_GE(static_cast<double>(found.largest), 0.8 * static_cast<double>(device.true_most(1 << 20))) << figures;
  }
}

TEST(BatchFinder, NeedsNoFiguresOfMemory) {
  MadeUp device;
  device.figures_of_fits = false;
  device.limit = 1000 + 100 * 200;
  const FinderOptions options = device.options(4096);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_GE(found.largest, 140) << "of 200";
  EXPECT_LE(found.chosen, 184) << "8 % less than what may fit";
  EXPECT_THAT(found.largest_reason, HasSubstr("did not fit"));
}

TEST(BatchFinder, TheWholeBatchNeedsNoMargin) {
  MadeUp device;
  device.limit = 1000 + 100 * 128;
  const FinderOptions options = device.options(128);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_EQ(found.largest, 128);
  EXPECT_EQ(found.chosen, 128);
  EXPECT_EQ(found.end, FinderEnd::kWholeBatch);
}

TEST(BatchFinder, TheChoiceLeavesAMargin) {
  MadeUp device;
  device.limit = 1000 + 100 * 200;
  const FinderOptions options = device.options(4096);
  const Found found = find_batch(device, options);
  EXPECT_GE(found.largest, 190);
  EXPECT_LE(device.bytes(static_cast<double>(found.chosen)), 0.92 * device.limit);
  EXPECT_GE(found.chosen, 175) << "and no more than the margin";
  EXPECT_THAT(found.chosen_reason, HasSubstr("8 % of the memory"));
}

TEST(BatchFinder, TheFastestNeedNotBeTheLargest) {
  MadeUp device;  // beyond 60 samples the cache is too small
  device.seconds = [](double samples) { return 1e-3 + 1e-4 * samples * (samples > 60 ? 2 : 1); };
  FinderOptions options = device.options(1024);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_EQ(found.largest, 1024);
  EXPECT_GE(found.chosen, 16);
  EXPECT_LE(found.chosen, 60);
}

TEST(BatchFinder, EquallyFastSizesAreNotToldApart) {
  MadeUp device;
  device.seconds = [](double samples) { return 1e-4 * samples * (samples < 10 ? 2 : samples > 100 ? 1.03 : 1); };
  FinderOptions options = device.options(256);
  EXPECT_EQ(find_batch(device, options).chosen, 256);
  device.asked.clear();
  options.smaller_wins = true;
  const Found found = find_batch(device, options);
  EXPECT_EQ(found.chosen, 16);
  EXPECT_THAT(found.chosen_reason, HasSubstr("fastest"));
}

TEST(BatchFinder, StaysWithinItsTime) {
  for (const double each : {1e-4, 1e-2, 1.0, 30.0}) {
    MadeUp device;
    device.seconds = [=](double samples) { return each * samples; };
    const FinderOptions options = device.options(1 << 20);
    const Found found = find_batch(device, options);
    expect_sound(found, device, options);
    EXPECT_LE(device.now, 60.0 * 1.0001) << each;
    EXPECT_EQ(found.end, FinderEnd::kTime);
    EXPECT_THAT(found.largest_reason, HasSubstr("60 s"));
  }
}

TEST(BatchFinder, ToleratesNoise) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    MadeUp device;
    std::uniform_real_distribution noise(0.98, 1.02);
    device.seconds = [&](double samples) { return (1e-3 + 1e-5 * samples) * noise(random) * noise(random); };
    device.bytes = [&](double samples) { return 1e5 + 1e4 * samples * (1 + 0.25 * (noise(random) - 1)); };
    device.limit = 1e5 + 1e4 * 700;
    const FinderOptions options = device.options(4096);
    const Found found = find_batch(device, options);
    expect_sound(found, device, options);
    EXPECT_GE(found.largest, 640) << ::testing::PrintToString(device.asked);
  }
}

TEST(BatchFinder, OneDisturbedProbeOfTheLargestDoesNotDecide) {
  MadeUp device;
  device.seconds = [&](double samples) {
    const bool disturbed = samples == 256 && std::ranges::count(device.asked, 256) == 1;
    return 1e-3 + 1e-4 * samples * (disturbed ? 10 : 1);
  };
  const FinderOptions options = device.options(256);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_EQ(found.chosen, 256);
}

TEST(BatchFinder, SaysWhenNothingFits) {
  MadeUp device;
  device.limit = 10;
  const FinderOptions options = device.options(64, 2);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_EQ(found.largest, 0);
  EXPECT_EQ(found.chosen, 0);
  EXPECT_EQ(found.largest_reason, "not even 2 samples fit");
}

TEST(BatchFinder, OneSampleIsABatch) {
  MadeUp device;
  const FinderOptions options = device.options(1);
  const Found found = find_batch(device, options);
  expect_sound(found, device, options);
  EXPECT_EQ(found.chosen, 1);
}

}  // namespace
}  // namespace stoker::memory

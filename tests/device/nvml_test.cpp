// SPDX-License-Identifier: Apache-2.0
// NVML's figures from libraries that stand in for it: a whole one, one without half of its functions, one that fails,
// and none. The figures expected here are those in tests/support/fake_nvml.cpp.
#include "stoker/device/nvml.h"

#include <gmock/gmock.h>

#include "stoker/device/nvml_abi.h"
#include "support/fake_nvml.h"

namespace stoker::device {
namespace {

using stoker::testing::fake_nvml;
using stoker::testing::FakeNvmlMode;
using ::testing::HasSubstr;

TEST(NvmlLibrary, AWholeOneGivesEveryFigure) {
  const Nvml nvml(fake_nvml("whole"));
  EXPECT_EQ(nvml.missing(), "");
  EXPECT_EQ(nvml.driver(), "580.65.06");
  ASSERT_EQ(nvml.count(), 2);
  EXPECT_EQ(nvml.find("0000:d8:00.0"), 1);  // as CUDA writes it
  EXPECT_EQ(nvml.find("00000000:3B:00.0"), 0);
  EXPECT_EQ(nvml.find("0001:3b:00.0"), std::nullopt);  // another domain

  const GpuFacts facts = nvml.facts(0);
  EXPECT_EQ(facts.name, "NVIDIA Fake 80GB");
  EXPECT_EQ(facts.uuid, "GPU-01234567");
  EXPECT_EQ(facts.bus_id, "00000000:3B:00.0");
  EXPECT_EQ(facts.memory_bytes, 80 * 0x1p30);
  EXPECT_EQ(facts.power_limit_watts, 700);
  EXPECT_EQ(facts.sm_clock_hz, 1980e6);
  EXPECT_EQ(facts.memory_clock_hz, 2619e6);
  EXPECT_EQ(facts.pcie_generation, 5);
  EXPECT_EQ(facts.pcie_width, 16);
  EXPECT_EQ(facts.nvlinks, 3);
  EXPECT_FALSE(facts.mig);
  EXPECT_TRUE(nvml.facts(1).mig);

  const GpuPace pace = nvml.pace(0);
  EXPECT_DOUBLE_EQ(pace.busy_share.value(), 0.75);
  EXPECT_DOUBLE_EQ(pace.memory_busy_share.value(), 0.4);
  EXPECT_DOUBLE_EQ(pace.power_watts.value(), 412.5);
  EXPECT_DOUBLE_EQ(pace.sm_clock_hz.value(), 1410e6);
  EXPECT_EQ(pace.throttle, 0x5U);

  const GpuState state = nvml.state(0);
  EXPECT_EQ(state.memory_used_bytes, 30 * 0x1p30);
  EXPECT_EQ(state.temperature_celsius, 64);
  EXPECT_DOUBLE_EQ(nvml.state(0).energy_joules.value() - state.energy_joules.value(), 400);
  EXPECT_EQ(state.pcie_generation, 4);
  EXPECT_EQ(state.pcie_width, 8);
}

TEST(NvmlLibrary, ASliceOfAGpuHasNoFigureInsteadOfZero) {
  const GpuPace pace = Nvml(fake_nvml("whole")).pace(1);
  EXPECT_EQ(pace.busy_share, std::nullopt);
  EXPECT_TRUE(pace.power_watts.has_value());
}

TEST(NvmlLibrary, HoldersBeyondTheFirstGuessAreFound) {
  const std::vector<GpuHolder> holders = Nvml(fake_nvml("whole")).holders(0);
  ASSERT_EQ(holders.size(), 70U);
  EXPECT_EQ(holders[0].pid, 4711U);
  EXPECT_EQ(holders[0].bytes, 1 << 30);
  EXPECT_EQ(holders[1].bytes, -1);  // the driver does not tell
}

TEST(NvmlLibrary, CountersCompareEachLookWithTheLast) {
  const Nvml nvml(fake_nvml("whole"));
  const auto activity = nvml.activity(0);
  ASSERT_NE(activity, nullptr);
  EXPECT_TRUE(activity->since_last().empty());
  for (int i = 0; i < 3; ++i) {
    const auto figures = activity->since_last();
    ASSERT_EQ(figures.size(), 7U);  // one of eight is not supported
    EXPECT_EQ(figures[0].first, "sm_busy_share");
    EXPECT_DOUBLE_EQ(figures[0].second, 0.1) << "the difference of neighbouring samples is 1";
  }
  EXPECT_EQ(nvml.activity(1), nullptr);
}

TEST(NvmlLibrary, MissingFunctionsAreMissingFigures) {
  const Nvml nvml(fake_nvml("half"));
  EXPECT_EQ(nvml.missing(), "");
  const GpuFacts facts = nvml.facts(0);
  EXPECT_EQ(facts.name, "NVIDIA Fake 80GB");
  EXPECT_EQ(facts.uuid, "");
  EXPECT_EQ(facts.power_limit_watts, std::nullopt);
  EXPECT_EQ(facts.nvlinks, std::nullopt);
  EXPECT_DOUBLE_EQ(nvml.pace(0).busy_share.value(), 0.75);
  EXPECT_EQ(nvml.state(0).temperature_celsius, std::nullopt);
  EXPECT_EQ(nvml.state(0).pcie_width, std::nullopt);
  EXPECT_EQ(nvml.activity(0), nullptr);
}

TEST(NvmlLibrary, FailingFunctionsAreMissingFigures) {
  const FakeNvmlMode mode("errors");
  const Nvml nvml(fake_nvml("whole"));
  EXPECT_EQ(nvml.missing(), "");
  EXPECT_EQ(nvml.driver(), "");
  EXPECT_EQ(nvml.find("00000000:3B:00.0"), std::nullopt);
  EXPECT_EQ(nvml.facts(0).memory_bytes, std::nullopt);
  const GpuPace pace = nvml.pace(0);
  EXPECT_FALSE(pace.busy_share || pace.memory_busy_share || pace.power_watts || pace.sm_clock_hz || pace.throttle);
  const GpuState state = nvml.state(0);
  EXPECT_FALSE(state.memory_used_bytes || state.energy_joules || state.temperature_celsius || state.pcie_width);
  EXPECT_TRUE(nvml.holders(0).empty());
  EXPECT_EQ(nvml.activity(0), nullptr);
}

TEST(NvmlLibrary, CountersThatFailMeanwhileBeginAnew) {
  const Nvml nvml(fake_nvml("whole"));
  const auto activity = nvml.activity(0);
  EXPECT_TRUE(activity->since_last().empty());
  {
    const FakeNvmlMode mode("errors");
    EXPECT_TRUE(activity->since_last().empty());
  }
  EXPECT_TRUE(activity->since_last().empty());  // the sample before is too old to compare with
  EXPECT_EQ(activity->since_last().size(), 7U);
}

TEST(NvmlLibrary, WithoutADriverItSaysSo) {
  const Nvml none("/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(none.missing(), "no NVIDIA driver was found (libnvidia-ml.so.1 is missing)");
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.find("00000000:3B:00.0"), std::nullopt);
  const FakeNvmlMode mode("refuse");
  const Nvml refuses(fake_nvml("whole"));
  EXPECT_THAT(refuses.missing(), HasSubstr("nvmlInit_v2 gives error 9"));
  EXPECT_EQ(refuses.count(), 0);
}

}  // namespace
}  // namespace stoker::device

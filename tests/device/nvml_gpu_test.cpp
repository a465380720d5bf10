// SPDX-License-Identifier: Apache-2.0
// The machine's own NVML against CUDA's view of the same GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "stoker/device/backend.h"
#include "stoker/device/nvml.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

TEST(GpuNvml, SeesTheSameGpuAsCuda) {
  STOKER_NEEDS_GPU();
  ASSERT_EQ(machine_nvml().missing(), "");
  const auto gpu = machine_nvml().find(backend_for(kGpu).bus_id(kGpu));
  ASSERT_TRUE(gpu.has_value());
  const GpuFacts facts = machine_nvml().facts(*gpu);
  EXPECT_EQ(backend_for(kGpu).describe(kGpu).name.find(facts.name), 0U) << facts.name;
  if (facts.mig) {
    GTEST_SKIP() << "the GPU is divided (MIG): the other figures are missing or those of the whole GPU";
  }
  const double total = static_cast<double>(backend_for(kGpu).memory(kGpu).total);
  EXPECT_NEAR(facts.memory_bytes.value_or(0), total, 0.05 * total);
  const GpuPace pace = machine_nvml().pace(*gpu);
  EXPECT_LE(pace.busy_share.value_or(0), 1);
  EXPECT_LE(pace.sm_clock_hz.value_or(0), facts.sm_clock_hz.value_or(1e11));
  EXPECT_GT(machine_nvml().state(*gpu).memory_used_bytes.value_or(1), 0);
}

TEST(GpuNvml, CountersOfHopperAreShares) {
  STOKER_NEEDS_GPU();
  const auto gpu = machine_nvml().find(backend_for(kGpu).bus_id(kGpu));
  const auto activity = gpu ? machine_nvml().activity(*gpu) : nullptr;
  if (activity == nullptr) {
    GTEST_SKIP() << "this GPU has no performance counters in NVML (GPM needs Hopper or later)";
  }
  EXPECT_TRUE(activity->since_last().empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto figures = activity->since_last();
  EXPECT_FALSE(figures.empty());
  for (const auto& [name, value] : figures) {
    EXPECT_GE(value, 0) << name;
    if (name.ends_with("_share")) {
      EXPECT_LE(value, 1.01) << name;
    }
  }
}

}  // namespace
}  // namespace stoker::device

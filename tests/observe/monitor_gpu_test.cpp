// SPDX-License-Identifier: Apache-2.0
// The monitor's figures of a real GPU: idle, then while it multiplies matrices.
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/monitor/sampler.h"
#include "support/gpu.h"

namespace stoker::observe {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

// The first record with figures of the GPU, while work is done again and again. Where the driver answers slowly, the
// monitor asks it less often than each second; after a minute the record is returned without them.
std::map<std::string, double> busy_record(Sampler& sampler, const std::string& figure,
                                          const std::function<void()>& work) {
  std::map<std::string, double> result;
  const double start = now_s();
  while (!result.contains(figure) && now_s() - start < 60) {
    work();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (const auto record = sampler.tick(now_s())) {
      result.clear();
      for (const core::Figure& each : record->figures) {
        result.emplace(each.name, each.value);
      }
    }
  }
  std::printf("  figures after %.1f s\n", now_s() - start);
  return result;
}

TEST(GpuMonitor, ABusyGpuLooksBusy) {
  STOKER_NEEDS_GPU();
  const device::Nvml& nvml = device::machine_nvml();
  ASSERT_EQ(nvml.missing(), "");
  const std::string bus_id = device::backend_for(kGpu).bus_id(kGpu);
  ASSERT_TRUE(nvml.find(bus_id).has_value()) << bus_id;
  const std::string gpu = fmt::format("gpu{}.", *nvml.find(bus_id));
  Sampler sampler({.nvml = &nvml, .gpu_bus_id = bus_id}, now_s());
  const at::Tensor matrix = at::ones({4096, 4096}, at::device(kGpu).dtype(at::kHalf));
  const auto multiply = [&] {
    for (int i = 0; i < 20; ++i) {
      static_cast<void>(at::matmul(matrix, matrix));
    }
    device::backend_for(kGpu).synchronize(kGpu);
  };
  busy_record(sampler, gpu + "power_watts", multiply);  // the driver averages over up to a second
  const auto busy = busy_record(sampler, gpu + "power_watts", multiply);
  if (nvml.facts(*nvml.find(bus_id)).mig) {
    EXPECT_FALSE(busy.contains(gpu + "busy_share"));
    GTEST_SKIP() << "the GPU is divided (MIG)";
  }
  for (const auto& [name, value] : busy) {
    if (name.starts_with(gpu)) {
      std::printf("  %s = %g\n", name.c_str(), value);
    }
  }
  EXPECT_GT(busy.at(gpu + "busy_share"), 0.2);
  EXPECT_GT(busy.at(gpu + "power_watts"), 10);
  EXPECT_GT(busy.at(gpu + "memory_used_bytes"), 2 * 4096 * 4096);
  EXPECT_LE(busy.at(gpu + "sm_clock_hz"), busy.at(gpu + "sm_clock_limit_hz"));
  if (nvml.activity(*nvml.find(bus_id))) {
    EXPECT_GT(busy.at(gpu + "sm_busy_share"), 0.1);
    EXPECT_GT(busy.at(gpu + "tensor_busy_share"), 0.02);
  }
}

}  // namespace
}  // namespace stoker::observe

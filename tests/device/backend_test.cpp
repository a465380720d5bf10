// SPDX-License-Identifier: Apache-2.0
// The CPU twin keeps the contract of every backend, and the registry says what is missing.
#include "stoker/device/backend.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/device/backend_cpu.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/gpu_holders.h"
#include "stoker/device/host_allocator.h"
#include "stoker/device/host_memory.h"
#include "stoker/device/process_facts.h"

namespace stoker::device {
namespace {

using ::testing::HasSubstr;

const c10::Device kCpu(c10::DeviceType::CPU);

std::string error_text(const auto& action) {
  try {
    action();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

TEST(Backend, CpuFiguresAreThoseOfTensors) {
  install_host_allocator();
  const at::Tensor held = at::empty({1 << 20});
  const MemoryFigures figures = backend_for(kCpu).memory(kCpu);
  EXPECT_GE(figures.allocated, 4 << 20);
  EXPECT_EQ(figures.allocated, host_allocated());
  EXPECT_EQ(backend_for(kCpu).allocated(kCpu), figures.allocated);
  EXPECT_GE(figures.peak, figures.allocated);
  EXPECT_GE(figures.reserved, figures.allocated);
  EXPECT_EQ(figures.total, memory_limit_bytes());
  EXPECT_GE(figures.free, 0);
  EXPECT_LT(figures.free, figures.total);
}

TEST(Backend, CpuEventsMeasureBetweenRecords) {
  Backend& cpu = backend_for(kCpu);
  const auto first = cpu.make_event(kCpu, /*timing=*/true);
  const auto second = cpu.make_event(kCpu, /*timing=*/true);
  EXPECT_TRUE(first->ready());
  EXPECT_THROW((void)second->elapsed_ms(*first), DeviceError);
  first->record();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  second->record();
  second->wait();
  EXPECT_GE(second->elapsed_ms(*first), 5);
  EXPECT_LE(first->elapsed_ms(*second), -5);
  cpu.synchronize(kCpu);
  const auto timeless = cpu.make_event(kCpu, /*timing=*/false);
  timeless->record();
  timeless->wait();
  EXPECT_THROW((void)timeless->elapsed_ms(*first), DeviceError);
  EXPECT_THROW((void)second->elapsed_ms(*timeless), DeviceError);
}

TEST(Backend, CpuDescribesItself) {
  const DeviceFacts facts = backend_for(kCpu).describe(kCpu);
  EXPECT_EQ(facts.name, machine_facts().cpu);
  EXPECT_EQ(facts.cores, cpu_quota().cores);
  EXPECT_TRUE(facts.compute_capability.empty());
  EXPECT_EQ(backend_for(kCpu).bus_id(kCpu), "");
  EXPECT_TRUE(busy_processes(kCpu).empty());
}

TEST(Backend, MissingKindsSayWhy) {
  EXPECT_EQ(find_backend(c10::DeviceType::MPS), nullptr);
  const auto ask = [] { (void)backend_for(c10::Device(c10::DeviceType::MPS, 0)); };
  EXPECT_THAT(error_text(ask), HasSubstr("no MPS: Stoker supports cpu and cuda; use device=cpu"));
}

TEST(Backend, RegistryTakesOffersAndRefusals) {
  constexpr auto kKind = c10::DeviceType::IPU;  // a kind that no other test uses
  registry().refuse(kKind, "nobody made one");
  EXPECT_EQ(missing_reason(kKind), "nobody made one");
  const auto ask = [] { (void)backend_for(c10::Device(kKind, 0)); };
  EXPECT_THAT(error_text(ask), HasSubstr("nobody made one"));
  registry().offer(kKind, make_cpu_backend());
  EXPECT_EQ(missing_reason(kKind), "");
  EXPECT_EQ(&backend_for(c10::Device(kKind, 0)), find_backend(kKind));
}

}  // namespace
}  // namespace stoker::device

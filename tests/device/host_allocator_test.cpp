// SPDX-License-Identifier: Apache-2.0
// Stoker's allocator of CPU tensors: what it counts is what tensors hold, a cap and real exhaustion are OutOfMemory,
// and torch's profiler still sees each allocation.
#include "stoker/device/host_allocator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/device/freed_memory.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/tensor_bytes.h"

namespace stoker::device {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

at::Tensor block(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

class HostAllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    install_host_allocator();
    set_host_cap(-1);
  }
  void TearDown() override { set_host_cap(-1); }
};

TEST_F(HostAllocatorTest, CountsWhatTensorsHold) {
  const std::int64_t before = host_allocated();
  {
    const at::Tensor one = block(kMiB), two = block(3 * kMiB + 1);
    EXPECT_EQ(host_allocated() - before, 4 * kMiB + 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(two.data_ptr()) % 64, 0U) << "AVX-512 loads need whole lines";
    reset_host_peak();
    { const at::Tensor three = block(2 * kMiB); }
    EXPECT_EQ(host_tensors().peak - before, 6 * kMiB + 1);
    EXPECT_EQ(host_tensors().allocated - before, 4 * kMiB + 1);
  }
  EXPECT_EQ(host_allocated(), before);
  EXPECT_EQ(block(0).numel(), 0);
}

// What the heap holds besides tensors does not depend on tensors of any size.
TEST_F(HostAllocatorTest, KnowsWhichTensorsAreInTheHeap) {
  if (!keeps_freed_memory()) {
    GTEST_SKIP() << "a sanitizer or the environment says how freed memory is handled";
  }
  const auto besides = [] { return heap_bytes().used - host_allocated_in_heap(); };
  const std::int64_t before = besides(), in_heap = host_allocated_in_heap();
  const at::Tensor small = block(100 << 10), large = block(64 * kMiB);
  EXPECT_EQ(host_allocated_in_heap() - in_heap, 100 << 10);
  EXPECT_LT(std::abs(besides() - before), 16 << 10);
}

TEST_F(HostAllocatorTest, CountsFromManyThreads) {
  const std::int64_t before = host_allocated();
  std::vector<at::Tensor> kept(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 500; ++round) {
          kept[i] = block(64 + round);
        }
      });
    }
  }
  EXPECT_EQ(host_allocated() - before, 4 * (64 + 499));
}

TEST_F(HostAllocatorTest, BooksBytesByPhaseAndAge) {
  const auto of = [](const BytesByAge& all, std::size_t age, core::Phase phase) {
    return all[age][static_cast<std::size_t>(phase)];
  };
  begin_host_step();
  const BytesByAge before = host_bytes_by_age();
  at::Tensor made;
  {
    const core::PhaseScope phase(core::Phase::kForward);
    made = block(kMiB);
  }
  EXPECT_EQ(core::t_phase, core::Phase::kOther);
  EXPECT_EQ(of(host_bytes_by_age(), 0, core::Phase::kForward) - of(before, 0, core::Phase::kForward), kMiB);
  for (int step = 1; step < 2 * kHostAges; ++step) {
    begin_host_step();
    const BytesByAge now = host_bytes_by_age();
    const auto age = static_cast<std::size_t>(std::min<std::int64_t>(step, kHostAges - 1));
    ASSERT_GE(of(now, age, core::Phase::kForward), kMiB) << "step " << step;
    ASSERT_EQ(of(now, 0, core::Phase::kForward), 0) << "step " << step;
  }
  const std::int64_t older = of(host_bytes_by_age(), kHostAges - 1, core::Phase::kForward);
  made = at::Tensor();
  EXPECT_EQ(older - of(host_bytes_by_age(), kHostAges - 1, core::Phase::kForward), kMiB);
}

TEST_F(HostAllocatorTest, RemembersThePhasesOfThePeak) {
  reset_host_peak();
  {
    const core::PhaseScope forward(core::Phase::kForward);
    const at::Tensor activation = block(2 * kMiB);
    const core::PhaseScope backward(core::Phase::kBackward);
    const at::Tensor gradient = block(kMiB);
  }
  const HostTensors tensors = host_tensors();
  EXPECT_EQ(tensors.peak_phase, core::Phase::kBackward);
  EXPECT_GE(tensors.peak_phases[static_cast<std::size_t>(core::Phase::kForward)], 2 * kMiB);
  EXPECT_EQ(tensors.peak_phases[static_cast<std::size_t>(core::Phase::kBackward)], kMiB);
  EXPECT_EQ(std::accumulate(tensors.peak_phases.begin(), tensors.peak_phases.end(), std::int64_t{0}), tensors.peak);
}

TEST_F(HostAllocatorTest, KeepsTensorsUnderTheCap) {
  ASSERT_EQ(host_allocated(), 0) << "the figures of the message";
  const at::Tensor held = block(kMiB);
  set_host_cap(host_allocated() + kMiB);
  EXPECT_EQ(backend_for(c10::kCPU).memory(c10::kCPU).free, kMiB);
  { const at::Tensor fits = block(kMiB); }
  try {
    (void)block(kMiB + 1);
    FAIL() << "more than the cap";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("hold 1.00 MiB of the 2.00 MiB that they may"), std::string::npos)
        << error.what();
  }
  { const at::Tensor still_fits = block(kMiB); }
}

TEST_F(HostAllocatorTest, RealExhaustionIsOutOfMemory) {
  const std::int64_t before = host_allocated();
  EXPECT_THROW((void)block(std::int64_t{1} << 60), OutOfMemory);
  EXPECT_THROW((void)c10::GetCPUAllocator()->allocate(SIZE_MAX), OutOfMemory);
  EXPECT_EQ(host_allocated(), before);
}

TEST_F(HostAllocatorTest, TorchsProfilerSeesAllocations) {
  const TensorBytes bytes(c10::kCPU);
  const at::Tensor made = block(5 * kMiB);
  EXPECT_EQ(bytes.held(), 5 * kMiB);
}

TEST_F(HostAllocatorTest, ATensorOfTheAllocatorBeforeIsFreedByIt) {
  c10::Allocator* const ours = c10::GetCPUAllocator();
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 255);
  at::Tensor older = at::ones({100});
  c10::SetCPUAllocator(ours, 255);
  const std::int64_t before = host_allocated();
  older.resize_({1000});  // a storage stays with its allocator
  EXPECT_EQ(host_allocated(), before);
  EXPECT_EQ(older[99].item<float>(), 1);
  older = at::Tensor();
  EXPECT_EQ(host_allocated(), before);
}

}  // namespace
}  // namespace stoker::device

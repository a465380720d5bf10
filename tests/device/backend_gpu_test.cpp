// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a real GPU: memory figures that follow a tensor, events in order, facts. Prints a skip message
// without one.
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "stoker/base/error.h"
#include "stoker/device/gpu_holders.h"
#include "stoker/device/tensor_bytes.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

// How often the calling thread has given up its core to wait.
long times_asleep() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(GpuLabel, MissesNoSuiteThatNeedsAGpu) {  // STOKER_NEEDS_GPU() uses the same check
  EXPECT_TRUE(testing::has_gpu_label("GpuBackend", "tests/device/backend_gpu_test.cpp"));
  EXPECT_FALSE(testing::has_gpu_label("NvtxGpu", "tests/device/nvtx_gpu_test.cpp"));
  EXPECT_TRUE(testing::has_gpu_label("Ways/GpuStep", "tests/job/step_gpu_test.cpp"));
  EXPECT_FALSE(testing::has_gpu_label("GpuBackend", "tests/device/backend_test.cpp"));
}

TEST(GpuBackend, MemoryFollowsATensor) {
  STOKER_NEEDS_GPU();
  constexpr std::int64_t kBytes = 64 << 20;
  const Backend& backend = backend_for(kGpu);
  const MemoryFigures before = backend.memory(kGpu);
  {
    const at::Tensor block = at::empty({kBytes}, at::device(kGpu).dtype(at::kByte));
    const MemoryFigures with = backend.memory(kGpu);
    EXPECT_EQ(with.allocated - before.allocated, kBytes);
    EXPECT_EQ(backend.allocated(kGpu), with.allocated);
    EXPECT_GE(with.reserved, with.allocated);
    EXPECT_GE(with.peak, with.allocated);
    EXPECT_LE(with.free, with.total);
  }
  EXPECT_EQ(backend.memory(kGpu).allocated, before.allocated);
  EXPECT_GE(backend.memory(kGpu).peak, before.allocated + kBytes);
}

TEST(GpuBackend, ThePeakCanBeReset) {
  STOKER_NEEDS_GPU();
  constexpr std::int64_t kBytes = 64 << 20;
  const Backend& backend = backend_for(kGpu);
  const std::int64_t before = backend.allocated(kGpu);
  { const at::Tensor block = at::empty({kBytes}, at::device(kGpu).dtype(at::kByte)); }
  EXPECT_GE(backend.memory(kGpu).peak, before + kBytes);
  TensorBytes bytes(kGpu);
  EXPECT_EQ(bytes.peak(), 0);
  { const at::Tensor block = at::empty({kBytes / 2}, at::device(kGpu).dtype(at::kByte)); }
  EXPECT_EQ(bytes.peak(), kBytes / 2);
  EXPECT_EQ(bytes.held(), 0);
  bytes.reset_peak();
  EXPECT_EQ(bytes.peak(), 0);
}

TEST(GpuBackend, EventsKeepOrder) {
  STOKER_NEEDS_GPU();
  const Backend& backend = backend_for(kGpu);
  const auto first = backend.make_event(kGpu, /*timing=*/true);
  const auto second = backend.make_event(kGpu, /*timing=*/true);
  EXPECT_TRUE(first->ready());  // nothing recorded: nothing to wait for
  EXPECT_THROW((void)second->elapsed_ms(*first), DeviceError);
  at::Tensor product = at::ones({2048, 2048}, at::device(kGpu));
  first->record();
  for (int i = 0; i < 20; ++i) {
    product = at::mm(product, product);
  }
  second->record();
  second->wait();
  EXPECT_TRUE(first->ready());
  EXPECT_TRUE(second->ready());
  EXPECT_GT(second->elapsed_ms(*first), 0);
  backend.synchronize(kGpu);
}

TEST(GpuBackend, WaitingForAnEventWithoutTimingSleeps) {
  STOKER_NEEDS_GPU();
  const Backend& backend = backend_for(kGpu);
  const auto done = backend.make_event(kGpu, /*timing=*/false);
  at::Tensor product = at::ones({4096, 4096}, at::device(kGpu));
  product = at::mm(product, product);  // the library's first call is not part of the wait below
  backend.synchronize(kGpu);
  for (int i = 0; i < 100; ++i) {
    product = at::mm(product, product);
  }
  done->record();
  const long before = times_asleep();
  done->wait();  // 100 products are queued before it
  EXPECT_GT(times_asleep(), before);
  EXPECT_THROW((void)done->elapsed_ms(*done), DeviceError);
}

TEST(GpuBackend, DescribesTheDevice) {
  STOKER_NEEDS_GPU();
  const DeviceFacts facts = backend_for(kGpu).describe(kGpu);
  EXPECT_FALSE(facts.name.empty());
  EXPECT_NE(facts.compute_capability.find('.'), std::string::npos);
  EXPECT_GT(facts.cores, 0);
  EXPECT_EQ(facts.memory_bytes, backend_for(kGpu).memory(kGpu).total);
  for (const std::string& process : busy_processes(kGpu)) {
    EXPECT_EQ(process.find("pid "), 0U) << process;
  }
}

}  // namespace
}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// The tests' own allocator: its counts against known sizes, and a planted failure at every allocation of a step.
#include "support/fault_allocator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

namespace stoker::testing {
namespace {

TEST(FaultAllocator, CountsBytesAndBlocks) {
  const FaultAllocator allocator;
  const std::int64_t bytes = allocator.live_bytes(), blocks = allocator.live_blocks(), made = allocator.allocations();
  {
    const at::Tensor tensor = at::empty({1000}, at::kDouble);
    const at::Tensor view = tensor.slice(0, 0, 10);
    EXPECT_EQ(allocator.live_bytes() - bytes, 8000);
    EXPECT_EQ(allocator.live_blocks() - blocks, 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U);
  }
  EXPECT_EQ(allocator.live_bytes(), bytes);
  EXPECT_EQ(allocator.live_blocks(), blocks);
  EXPECT_EQ(allocator.allocations() - made, 1);
}

TEST(FaultAllocator, TensorsOutliveIt) {
  at::Tensor inside;
  std::int64_t bytes = 0;
  {
    const FaultAllocator allocator;
    bytes = allocator.live_bytes();
    inside = at::empty({16});
  }
  EXPECT_EQ(device::host_allocated() - bytes, 64);
  inside.reset();
  EXPECT_EQ(device::host_allocated(), bytes);
}

// loss = sum(relu(x w)^2); returns the gradient of w.
at::Tensor gradient(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor leaf = w.detach().requires_grad_();
  const at::Tensor hidden = at::relu(at::mm(x, leaf));
  (hidden * hidden).sum().backward();
  return leaf.grad();
}

TEST(FaultAllocator, FailsAtEveryAllocationOfAStepAndTheNextStepIsRight) {
  const at::Tensor x = at::linspace(-1, 1, 12).reshape({3, 4});
  const at::Tensor w = at::linspace(-2, 1, 20).reshape({4, 5});
  const at::Tensor expected = gradient(x, w);
  FaultAllocator allocator;
  const std::int64_t bytes = allocator.live_bytes();
  const std::int64_t start = allocator.allocations();
  (void)gradient(x, w);
  const std::int64_t count = allocator.allocations() - start;
  ASSERT_GT(count, 5);
  for (std::int64_t k = 1; k <= count; ++k) {
    allocator.fail_at(k);
    EXPECT_THROW((void)gradient(x, w), c10::OutOfMemoryError) << "at allocation " << k;
    EXPECT_FALSE(allocator.armed());
    EXPECT_TRUE(gradient(x, w).equal(expected)) << "after a failure at allocation " << k;
    EXPECT_EQ(allocator.live_bytes(), bytes) << "memory was left after a failure at allocation " << k;
  }
  allocator.fail_at(count + 1);
  EXPECT_TRUE(gradient(x, w).equal(expected));
  EXPECT_TRUE(allocator.armed());
}

}  // namespace
}  // namespace stoker::testing

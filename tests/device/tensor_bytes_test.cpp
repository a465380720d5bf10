// SPDX-License-Identifier: Apache-2.0
// The bytes counted within a scope are those of the tensors' shapes, through frees, a backward pass and other threads.
// They agree with the count of another allocator.
#include "stoker/device/tensor_bytes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "support/fault_allocator.h"

namespace stoker::device {
namespace {

const c10::Device kCpu(c10::DeviceType::CPU);
constexpr std::int64_t kFloats = 1000;
constexpr std::int64_t kBytes = 4 * kFloats;

TEST(TensorBytes, FollowsTensorsAndTheirEnd) {
  const at::Tensor older = at::empty({7 * kFloats});
  TensorBytes bytes(kCpu);
  EXPECT_EQ(bytes.held(), 0);
  const at::Tensor kept = at::empty({kFloats});
  {
    const at::Tensor twice = at::empty({2 * kFloats});
    EXPECT_EQ(bytes.held(), 3 * kBytes);
    EXPECT_EQ(kept.view({10, -1}).numel(), kFloats);  // a view holds nothing of its own
  }
  EXPECT_EQ(bytes.held(), kBytes);
  EXPECT_EQ(bytes.peak(), 3 * kBytes);
  bytes.reset_peak();
  EXPECT_EQ(bytes.peak(), kBytes);
  const at::Tensor more = at::empty({kFloats}, at::kByte);
  EXPECT_EQ(bytes.peak(), kBytes + kFloats);
}

TEST(TensorBytes, SeesABackwardPass) {
  TensorBytes bytes(kCpu);
  const at::Tensor weight = at::ones({kFloats}).requires_grad_();
  {
    // At the peak, in the backward of a * a: weight, a, b, one gradient for each factor, perhaps their sum.
    const at::Tensor a = weight * 2;
    const at::Tensor b = a * a;
    const at::Tensor sum = b.sum();
    EXPECT_EQ(bytes.held(), 3 * kBytes + 4);
    sum.backward();
    EXPECT_GE(bytes.peak(), 5 * kBytes);
    EXPECT_LE(bytes.peak(), 6 * kBytes + 16);
  }
  EXPECT_EQ(bytes.held(), 2 * kBytes);  // the weight and its gradient
}

// The bytes held at several points of a few forward and backward passes.
std::vector<std::int64_t> held_over_passes(const std::function<std::int64_t()>& held) {
  std::vector<std::int64_t> seen;
  at::Tensor x = at::ones({64, 64}).requires_grad_();
  for (int i = 0; i < 3; ++i) {
    const at::Tensor y = at::relu(x * x).matmul(x);
    seen.push_back(held());
    y.sum().backward();
    seen.push_back(held());
    x.mutable_grad() = at::Tensor();
    seen.push_back(held());
  }
  return seen;
}

TEST(TensorBytes, AgreesWithAnAllocatorThatCounts) {
  std::vector<std::int64_t> counted;
  {
    const testing::FaultAllocator allocator;
    const std::int64_t before = device::host_allocated();
    counted = held_over_passes([&] { return device::host_allocated() - before; });
  }
  TensorBytes bytes(kCpu);
  EXPECT_EQ(held_over_passes([&] { return bytes.held(); }), counted);
  EXPECT_GE(bytes.peak(), *std::ranges::max_element(counted));
  EXPECT_EQ(bytes.held(), 0);
}

TEST(TensorBytes, OtherThreadsAreNotSeen) {
  TensorBytes bytes(kCpu);
  at::Tensor elsewhere;
  std::jthread([&] { elsewhere = at::empty({kFloats}); }).join();
  EXPECT_EQ(bytes.held(), 0);
  elsewhere = at::Tensor();
  EXPECT_EQ(bytes.held(), 0);
}

TEST(TensorBytes, AnAddressThatComesAgainCountsOnce) {
  const TensorBytes bytes(kCpu);
  int block = 0;  // its end is not seen, as when another thread frees it
  c10::reportMemoryUsageToProfiler(&block, kBytes, 0, 0, kCpu);
  c10::reportMemoryUsageToProfiler(&block, 3 * kBytes, 0, 0, kCpu);
  EXPECT_EQ(bytes.held(), 3 * kBytes);
  EXPECT_EQ(bytes.peak(), 3 * kBytes);
  c10::reportMemoryUsageToProfiler(&block, -3 * kBytes, 0, 0, kCpu);
  EXPECT_EQ(bytes.held(), 0);
}

TEST(TensorBytes, ScopesFollowOneAnother) {
  std::optional<at::Tensor> kept;
  {
    TensorBytes first(kCpu);
    kept = at::empty({kFloats});
    EXPECT_EQ(first.held(), kBytes);
  }
  const TensorBytes second(kCpu);
  kept.reset();
  EXPECT_EQ(second.held(), 0);  // the first scope's memory does not count in the second
}

}  // namespace
}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Memory whose allocator throws when it is freed, as torch's does once a device is lost.
#include "stoker/core/guarded_memory.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "support/fault_allocator.h"

namespace stoker::core {
namespace {

int asked_to_free = 0;

void free_on_a_lost_device(void*) {
  ++asked_to_free;
  TORCH_CHECK(false, "CUDA error: the device is lost");
}

at::Tensor on_a_lost_device(float& value) {
  at::Tensor tensor = at::empty({0}, at::kFloat);
  (void)tensor.storage().set_data_ptr(c10::DataPtr(&value, &value, &free_on_a_lost_device, c10::DeviceType::CPU));
  return tensor;
}

TEST(GuardedMemory, IsTheSameTensorAndIsFreed) {
  const testing::FaultAllocator allocator;
  {
    const at::Tensor fresh = at::arange(6, at::kLong).view({2, 3}).t().contiguous();
    const at::Tensor tensor = guarded(fresh.transpose(0, 1).clone());  // with its own strides
    EXPECT_TRUE(tensor.equal(at::arange(6, at::kLong).view({2, 3})));
    EXPECT_NE(guarded_memory(tensor), nullptr);
    EXPECT_EQ(guarded_memory(tensor)->get(), tensor.const_data_ptr());
    EXPECT_EQ(guarded_memory(tensor.narrow(0, 1, 1)), guarded_memory(tensor));
    EXPECT_EQ(guarded_memory(fresh), nullptr);
    EXPECT_EQ(guarded(at::empty({0, 3})).numel(), 0);
  }
  EXPECT_EQ(allocator.live_blocks(), 0);
}

// This is the last test: from here on nothing is freed in this process.
TEST(GuardedMemory, OfALostDeviceStaysAndTheDeviceIsAskedOnce) {
  float value = 0;
  { const at::Tensor first = guarded(on_a_lost_device(value)); }
  { const at::Tensor second = guarded(on_a_lost_device(value)); }
  EXPECT_EQ(asked_to_free, 1);
  // Without the guard the process dies.
  EXPECT_DEATH({ const at::Tensor plain = on_a_lost_device(value); }, "the device is lost");
}

}  // namespace
}  // namespace stoker::core

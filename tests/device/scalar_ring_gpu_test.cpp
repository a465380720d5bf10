// SPDX-License-Identifier: Apache-2.0
// The ring and placement on a real GPU: values arrive intact although the device is still busy when they are written
// and their tensor is overwritten at once. Prints a skip message without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "stoker/device/placement.h"
#include "stoker/device/scalar_ring.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

TEST(GpuScalarRing, EachStepReadsItsOwnValues) {
  STOKER_NEEDS_GPU();
  constexpr int kSteps = 40;
  ScalarRing ring(kGpu, 2, 8);
  at::Tensor values = at::zeros({2}, at::device(kGpu));
  at::Tensor busy = at::ones({2048, 2048}, at::device(kGpu));
  std::vector<std::shared_ptr<const core::PendingScalars>> held;
  for (int step = 0; step < kSteps; ++step) {
    busy = at::mm(busy, busy);  // keeps the stream occupied, so that a copy without its event would read too early
    values.fill_(step);
    held.push_back(ring.write(values));
    values.fill_(-1);  // comes after the copy on the same stream
  }
  for (int step = 0; step < kSteps; ++step) {
    const core::Scalars scalars = held[static_cast<std::size_t>(step)]->read();
    EXPECT_EQ(scalars.values[0], static_cast<float>(step));
    EXPECT_EQ(scalars.values[1], static_cast<float>(step));
  }
  EXPECT_EQ(ring.slots(), static_cast<std::size_t>(kSteps));  // all were held
}

TEST(GpuScalarRing, TemporariesMayDieAfterWrite) {
  STOKER_NEEDS_GPU();
  ScalarRing ring(kGpu, 1, 4);
  for (int step = 0; step < 200; ++step) {
    const auto handle = ring.write(at::full({1}, step, at::device(kGpu).dtype(at::kFloat)));
    const at::Tensor reuse = at::full({1}, -5.0, at::device(kGpu));  // likely the same memory
    ASSERT_EQ(handle->read().values[0], static_cast<float>(step));
  }
  EXPECT_EQ(ring.slots(), 4U);
}

TEST(GpuPlacement, BatchesArriveWhole) {
  STOKER_NEEDS_GPU();
  EXPECT_EQ(choose_device("auto").device, kGpu);
  core::Batch batch({}, {0, 1, 2});
  const at::Tensor image = at::arange(3 * 5 * 5 * 3).remainder(256).to(at::kByte).reshape({3, 5, 5, 3});
  batch.set("image", image.pin_memory());
  batch.set("target", at::arange(3));
  const core::Batch moved = move_batch(std::move(batch), kGpu);
  EXPECT_EQ(moved["image"].device(), kGpu);
  EXPECT_TRUE(moved["image"].cpu().equal(image));
  EXPECT_TRUE(moved["target"].cpu().equal(at::arange(3)));
  const core::Batch back = move_batch(move_batch(core::Batch(moved.slice(0, 3)), kGpu), c10::Device(at::kCPU));
  EXPECT_TRUE(back["image"].equal(image));
}

}  // namespace
}  // namespace stoker::device

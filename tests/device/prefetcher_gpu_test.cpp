// SPDX-License-Identifier: Apache-2.0
// The prefetcher on a real GPU: page-locked slots that are overwritten as soon as they come back, and a stream that is
// busy with earlier work. Prints a skip message without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "stoker/device/prefetcher.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

constexpr std::int64_t kBytes = 16 << 20;

class PinnedSlots final : public core::BatchSource {
 public:
  PinnedSlots() {
    for (at::Tensor& slot : slots_) {
      slot = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
    }
  }
  std::optional<core::Batch> next() override {
    at::Tensor& slot = slots_[static_cast<std::size_t>(step_) % std::size(slots_)];
    slot.fill_(step_ % 200);
    core::Batch batch({0, step_++}, {0});
    batch.set("image",
              at::from_blob(
                  slot.mutable_data_ptr(), {1, kBytes}, [slot](void*) mutable { slot.fill_(255); }, at::kByte));
    return batch;
  }

 private:
  at::Tensor slots_[8];
  std::int64_t step_ = 0;
};

TEST(GpuPrefetcher, BatchesArriveWhole) {
  STOKER_NEEDS_GPU();
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  const auto source = prefetched(std::make_unique<PinnedSlots>(), gpu);
  at::Tensor busy = at::ones({4096, 4096}, at::device(gpu));
  for (int step = 0; step < 100; ++step) {
    const std::optional<core::Batch> batch = source->next();
    busy = at::mm(busy, busy);
    const at::Tensor& image = (*batch)["image"];
    ASSERT_TRUE(image.is_cuda());
    ASSERT_TRUE(image.eq(step % 200).all().item<bool>()) << step;
  }
}

// Torch keeps freed memory per stream. If each prefetcher had its own stream, every evaluation would allocate memory
// for its batches again.
TEST(GpuPrefetcher, ManyOneAfterTheOtherShareTheirMemory) {
  STOKER_NEEDS_GPU();
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  const Backend& backend = backend_for(gpu);
  std::int64_t reserved = 0;
  for (int round = 0; round < 40; ++round) {
    {
      const auto source = prefetched(std::make_unique<PinnedSlots>(), gpu);
      for (int step = 0; step < 4; ++step) {
        ASSERT_TRUE(source->next().has_value());
      }
    }
    backend.synchronize(gpu);
    reserved = round < 2 ? backend.memory(gpu).reserved : reserved;
  }
  EXPECT_EQ(backend.memory(gpu).reserved, reserved);
}

}  // namespace
}  // namespace stoker::device

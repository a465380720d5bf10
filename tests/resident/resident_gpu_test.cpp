// SPDX-License-Identifier: Apache-2.0
// Batches made on a real GPU equal those of the CPU twin, for rows of bytes divisible by 16, 4 and 1, over several
// epochs and chunks, while the device is busy with earlier work. Prints a skip message without a GPU.
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "stoker/resident/source.h"
#include "support/gpu.h"
#include "support/made_up_images.h"

namespace stoker::resident {
namespace {

void expect_twins(const augment::ImageShape& shape, std::int64_t batch, int epochs) {
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  const auto images = std::make_shared<testing::MadeUpImages>(shape, batch);
  ResidentSource there(nullptr, images, gpu, {}), twin(nullptr, images, c10::Device(c10::kCPU), {});
  at::Tensor busy = at::ones({1024, 1024}, at::device(gpu));
  for (int ended = 0; ended < epochs;) {
    const std::optional<core::Batch> ours = there.next(), expected = twin.next();
    busy = at::mm(busy, busy);
    ASSERT_EQ(ours.has_value(), expected.has_value());
    if (!ours) {
      ++ended;
      continue;
    }
    ASSERT_TRUE((*ours)["image"].is_cuda());
    ASSERT_EQ(ours->indices(), expected->indices());
    ASSERT_EQ(ours->position(), expected->position());
    for (const char* field : {"image", "target"}) {
      ASSERT_TRUE((*ours)[field].cpu().equal((*expected)[field])) << field << " at step " << ours->position().step;
    }
  }
}

TEST(GpuResidentSource, BatchesAreTheTwins) {
  STOKER_NEEDS_GPU();
  ASSERT_NE(find_gatherer(c10::DeviceType::CUDA), nullptr);
  expect_twins({5000, 32, 32, 3}, 256, 3);  // in pieces of 16 bytes
  expect_twins({700, 28, 28, 1}, 64, 3);
  expect_twins({300, 6, 6, 1}, 32, 3);         // of 4
  expect_twins({300, 7, 5, 3}, 32, 3);         // of 1
  expect_twins({70'000, 2, 2, 1}, 70'000, 2);  // more rows than a grid is high
  expect_twins({150'000, 4, 4, 1}, 16, 1);     // more rows than a chunk has
}

}  // namespace
}  // namespace stoker::resident

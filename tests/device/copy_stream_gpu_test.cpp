// SPDX-License-Identifier: Apache-2.0
// Copies run at the same time as the computation, by the device's own clock. Prints a skip message without a GPU.
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "stoker/device/copy_stream.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

TEST(GpuCopyStream, ACopyEndsWhileEarlierWorkOfTheStepIsStillComputed) {
  STOKER_NEEDS_GPU();
  const c10::Device gpu(c10::DeviceType::CUDA, 0);
  const Backend& backend = backend_for(gpu);
  const auto stream = backend.make_copy_stream(gpu);
  const at::Tensor host = stream->host({64 << 20}, at::kByte);
  host.fill_(7);
  at::Tensor product = at::ones({4096, 4096}, at::device(gpu));
  product = at::mm(product, product);  // the library's first call does extra work
  (void)stream->copy(host);            // allocates its memory
  backend.synchronize(gpu);

  const auto begun = backend.make_event(gpu, /*timing=*/true), computed = backend.make_event(gpu, /*timing=*/true);
  begun->record();
  for (int i = 0; i < 200; ++i) {  // 27 TFLOP: at least a tenth of a second; the copy takes a few milliseconds
    product = at::mm(product, product);
  }
  computed->record();
  const auto copy_begun = stream->mark(/*timing=*/true);
  const at::Tensor there = stream->copy(host);
  const auto copied = stream->mark(/*timing=*/true);
  stream->await(*copied);
  stream->used_here(there);
  EXPECT_GT(copied->elapsed_ms(*copy_begun), 0);
  EXPECT_LT(copied->elapsed_ms(*begun), computed->elapsed_ms(*begun)) << "the copy waited for the computation";
  EXPECT_TRUE(there.eq(7).all().item<bool>());
}

}  // namespace
}  // namespace stoker::device

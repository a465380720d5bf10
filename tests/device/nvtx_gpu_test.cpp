// SPDX-License-Identifier: Apache-2.0
// Ranges go to the profiler that watches the process, if there is one. They begin, nest around work on the device, end,
// and can begin again. Prints a skip message without a GPU.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "stoker/device/nvtx.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

TEST(GpuNvtx, RangesBeginAndEnd) {
  STOKER_NEEDS_GPU();
  for (int i = 0; i < 2; ++i) {
    {
      const NvtxRanges ranges;
      EXPECT_TRUE(torch::profiler::impl::profilerEnabled());
      EXPECT_EQ(at::ones({2, 2}, at::TensorOptions(at::kCUDA)).sum().item<float>(), 4);
    }
    EXPECT_FALSE(torch::profiler::impl::profilerEnabled());
  }
}

}  // namespace
}  // namespace stoker::device

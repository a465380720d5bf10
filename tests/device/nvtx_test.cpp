// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/nvtx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "stoker/base/error.h"

namespace stoker::device {
namespace {

// Without the CUDA library there is nothing to mark: an error says so, and nothing stays switched on.
TEST(Nvtx, NeedsCuda) {
  try {
    const NvtxRanges ranges;
    FAIL() << "the CUDA library is not loaded here";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("set nvtx=off"));
  }
  EXPECT_FALSE(torch::profiler::impl::profilerEnabled());
}

}  // namespace
}  // namespace stoker::device

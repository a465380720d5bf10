// SPDX-License-Identifier: Apache-2.0
// For tests that run on a CPU and on a GPU: derive a fixture from OnDevice and name it in STOKER_ON_EACH_DEVICE. The
// cases Cpu/<Suite>.<Case>/0 run everywhere, which also checks the logic of the test. The cases Gpu/<Suite>.<Case>/0
// have the label gpu and are reported as skipped without a GPU.
#pragma once

#include <c10/core/Device.h>

#include "support/gpu.h"

namespace stoker::testing {

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (on_gpu()) {
      STOKER_NEEDS_GPU();
    }
  }
  [[nodiscard]] static c10::Device device() {
    return on_gpu() ? c10::Device(c10::DeviceType::CUDA, 0) : c10::Device(c10::DeviceType::CPU);
  }
  [[nodiscard]] static bool on_gpu() { return std::string_view(GetParam()) == "cuda"; }
};

}  // namespace stoker::testing

#define STOKER_ON_EACH_DEVICE(Suite)                              \
  INSTANTIATE_TEST_SUITE_P(Cpu, Suite, ::testing::Values("cpu")); \
  INSTANTIATE_TEST_SUITE_P(Gpu, Suite, ::testing::Values("cuda"))

// SPDX-License-Identifier: Apache-2.0
// For tests that need a GPU: include this and begin each case with STOKER_NEEDS_GPU(), which skips the case with a
// reason if there is no GPU. CUDA is loaded before main, because torch would otherwise remember for the whole process
// that it is missing.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "stoker/device/backend.h"
#include "stoker/device/cuda_library.h"

namespace stoker::testing {

inline const bool kHasGpu = device::load_cuda();

// Whether the ctest label `gpu` includes a suite: it runs the suites Gpu* of rooms that have files *_gpu_test.cpp
// (cmake/rooms.cmake). Any other suite would be missed where only the GPU tests run.
inline ::testing::AssertionResult has_gpu_label(std::string_view suite, std::string_view file) {
  if (!suite.starts_with("Gpu") && suite.find("/Gpu") == suite.npos) {  // Values/GpuStep
    return ::testing::AssertionFailure() << "the suite " << suite << " needs a GPU: its name must begin with Gpu";
  }
  if (!file.ends_with("_gpu_test.cpp")) {
    return ::testing::AssertionFailure() << file << " needs a GPU: its name must end in _gpu_test.cpp";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace stoker::testing

#define STOKER_NEEDS_GPU()                                                                                       \
  ASSERT_TRUE(                                                                                                   \
      stoker::testing::has_gpu_label(::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name(), \
                                     ::testing::UnitTest::GetInstance()->current_test_info()->file()));          \
  if (!stoker::testing::kHasGpu) {                                                                               \
    GTEST_SKIP() << "needs a GPU: " << stoker::device::missing_reason(c10::DeviceType::CUDA);                    \
  }                                                                                                              \
  static_assert(true)

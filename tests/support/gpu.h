// SPDX-License-Identifier: Apache-2.0
// For tests that need a GPU: include this, name the suite Gpu..., and begin each case with STOKER_NEEDS_GPU(), which
// skips aloud where there is none. CUDA is loaded before main, since torch remembers its absence for good.
#pragma once

#include <gtest/gtest.h>

#include "stoker/device/backend.h"
#include "stoker/device/cuda_library.h"

namespace stoker::testing {

inline const bool kHasGpu = device::load_cuda();

}  // namespace stoker::testing

#define STOKER_NEEDS_GPU()                                                                    \
  if (!stoker::testing::kHasGpu) {                                                            \
    GTEST_SKIP() << "needs a GPU: " << stoker::device::missing_reason(c10::DeviceType::CUDA); \
  }                                                                                           \
  static_assert(true)

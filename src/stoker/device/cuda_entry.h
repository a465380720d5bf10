// SPDX-License-Identifier: Apache-2.0
// The one door between the executable and libstoker_cuda.so: found by name after loading, handed the executable's
// registry. Both are built together; there is no promise between builds.
#pragma once

#include "stoker/device/backend.h"

namespace stoker::device {

// Offers or refuses a backend for CUDA. Called once, by load_cuda().
using CudaEntry = void(Registry& registry);
inline constexpr const char* kCudaEntryName = "stoker_cuda_register";

}  // namespace stoker::device

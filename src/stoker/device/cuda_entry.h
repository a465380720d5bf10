// SPDX-License-Identifier: Apache-2.0
// The one door between the executable and libstoker_cuda.so: found by name after loading, handed the executable's
// registry. Both are built together; there is no promise between builds.
#pragma once

#include <utility>

#include "stoker/device/backend.h"

namespace stoker::device {

// Offers or refuses a backend for CUDA. Called once, by load_cuda().
using CudaEntry = void(Registry& registry);
inline constexpr const char* kCudaEntryName = "stoker_cuda_register";

// A function that a room above device has in libstoker_cuda: linked into this list while the library is loaded, and
// offered to the executable with the backend.
struct CudaFunction {
  CudaFunction(const char* its_name, AnyFunction its_function) : name(its_name), function(its_function) {
    next = std::exchange(first, this);
  }
  CudaFunction(const CudaFunction&) = delete;
  CudaFunction& operator=(const CudaFunction&) = delete;

  const char* name;
  AnyFunction function;
  const CudaFunction* next = nullptr;
  static inline const CudaFunction* first = nullptr;
};

}  // namespace stoker::device

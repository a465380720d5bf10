// SPDX-License-Identifier: Apache-2.0
// The only entry point of libstoker_cuda.so: found by name after loading, and called with the registry of the
// executable. Both are built together; no compatibility between builds.
#pragma once

#include <utility>

#include "stoker/device/backend.h"

namespace stoker::device {

// Offers a CUDA backend or gives the reason why not. Called once, by load_cuda().
using CudaEntry = void(Registry& registry);
inline constexpr const char* kCudaEntryName = "stoker_cuda_register";

// A function in libstoker_cuda of a room above device: added to this list while the library is loaded, and offered to
// the executable together with the backend.
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

// SPDX-License-Identifier: Apache-2.0
// The one place that knows how torch and the CUDA libraries say that a device failed. Used by train and job;
// thread-safe: no state.
#pragma once

#include <exception>

namespace stoker::device {

// c10::AcceleratorError, DeviceError, and the plain errors of torch, of the CUDA runtime and driver, cuBLAS, cuDNN and
// NCCL, which are known by their text. Memory that ran out is often said in the same way: ask
// memory::is_out_of_memory() first.
[[nodiscard]] bool is_device_fault(const std::exception& error);

}  // namespace stoker::device

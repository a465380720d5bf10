// SPDX-License-Identifier: Apache-2.0
// The only place that recognises errors of torch and the CUDA libraries as a failed device. Used by train and job;
// thread-safe: no state.
#pragma once

#include <exception>

namespace stoker::device {

// c10::AcceleratorError, DeviceError, and plain errors of torch, the CUDA runtime and driver, cuBLAS, cuDNN and NCCL,
// which are recognised by their text. Out-of-memory errors often look the same: call memory::is_out_of_memory() first.
[[nodiscard]] bool is_device_fault(const std::exception& error);

}  // namespace stoker::device

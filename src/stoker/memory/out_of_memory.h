// SPDX-License-Identifier: Apache-2.0
// The only place that recognises out-of-memory errors of torch and the libraries below it. Used by job; thread-safe: no
// state.
#pragma once

#include <exception>

namespace stoker::memory {

// On the host or a device: std::bad_alloc, torch's two allocators, the CUDA runtime, cuBLAS, cuDNN and oneDNN, whose
// failures are plain errors with a text, and stoker::OutOfMemory. False for every other stoker::Error.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

}  // namespace stoker::memory

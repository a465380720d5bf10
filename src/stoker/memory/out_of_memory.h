// SPDX-License-Identifier: Apache-2.0
// The one place that knows how torch and the libraries below it say that memory ran out. Used by job; thread-safe: no
// state.
#pragma once

#include <exception>

namespace stoker::memory {

// Of the host or of a device: std::bad_alloc, torch's two allocators, the CUDA runtime, cuBLAS, cuDNN and oneDNN, whose
// failures are plain errors with a text, and stoker::OutOfMemory. False for every other error of ours.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

}  // namespace stoker::memory

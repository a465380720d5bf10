// SPDX-License-Identifier: Apache-2.0
// The only place that recognises out-of-memory errors of torch and the libraries below it. Used by job; thread-safe: no
// state.
#pragma once

#include <exception>
#include <string>

namespace stoker::memory {

// On the host or a device: std::bad_alloc, torch's two allocators, the CUDA runtime, cuBLAS, cuDNN and oneDNN, whose
// failures are plain errors with a text, and stoker::OutOfMemory. False for every other stoker::Error.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

// What happened, for messages that say more: the first line of the error, without the place in front.
[[nodiscard]] std::string out_of_memory_reason(const std::exception& error);

// In a handler: throws the error on unless memory ran out.
inline void rethrow_unless_out_of_memory(const std::exception& error) {
  if (!is_out_of_memory(error)) {
    throw;
  }
}

}  // namespace stoker::memory

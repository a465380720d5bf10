// SPDX-License-Identifier: Apache-2.0
// Brings CUDA into a program that is linked with torch_cpu alone: main calls load_cuda() as its first act, before any
// ATen call, because torch remembers the absence of CUDA for good. Thread-safe; the work is done once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::device {

// Probes the driver (libcuda.so.1), then loads libstoker_cuda.so, which registers the CUDA backend. True if CUDA can be
// used. False, without an exception, if not: missing_reason(at::kCUDA) then says why. Takes about 0.3 s with a driver,
// well under a millisecond without.
bool load_cuda();

// Where libstoker_cuda.so is looked for, in order: beside the executable, in ../lib and ../../lib (a build folder) from
// there, then wherever the dynamic loader looks.
[[nodiscard]] std::vector<std::filesystem::path> cuda_library_candidates(const std::filesystem::path& executable);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Loads CUDA into a program that is linked only with torch_cpu. main calls load_cuda() first, before any ATen call,
// because torch remembers permanently that CUDA is missing. Thread-safe; the work is done once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::device {

// Probes the driver (libcuda.so.1), then loads libstoker_cuda.so, which registers the CUDA backend. True if CUDA is
// usable. False, without an exception, if not; missing_reason(at::kCUDA) then has the reason. Takes about 0.3 s with a
// driver, well under a millisecond without.
bool load_cuda();

// Whether Kineto leaves the CUDA driver when a recording ends. If it stays, each later launch of a kernel takes up to
// twice as long (an H200); if it leaves, a recording that begins right then is lost. It leaves unless this says no, or
// the user's environment has TEARDOWN_CUPTI, which Kineto reads (its CuptiActivityApi.cpp). Not beside a recording's
// end.
void leave_driver_after_recording(bool leaves);

// The search path for libstoker_cuda.so, in order: beside the executable, ../lib and ../../lib (a build folder) from
// there, then the path of the dynamic loader.
[[nodiscard]] std::vector<std::filesystem::path> cuda_library_candidates(const std::filesystem::path& executable);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Which of their versions Highway's kernels use in this process. Used by jpeg_cases.cpp, before any kernel is used.
#pragma once

#include <string>

namespace stoker::bench {

// From now on kernels use AVX2 even if the processor has better instructions. Kernels that were chosen before stay.
void use_avx2_only();

// The name of the version that kernels use, as Highway chooses it: "AVX3" (AVX-512), "AVX2", ...
[[nodiscard]] std::string kernel_target();

}  // namespace stoker::bench

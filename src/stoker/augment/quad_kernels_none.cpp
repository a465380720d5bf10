// SPDX-License-Identifier: Apache-2.0
// For processors other than x86-64: CMake compiles this file or quad_kernels_x86.cpp.
#include "stoker/augment/pixel_kernels.h"

namespace stoker::augment {

const PixelKernels* quad_kernels() { return nullptr; }

}  // namespace stoker::augment

// SPDX-License-Identifier: Apache-2.0
// Between the CUDA backend, which every build has, and the kernel that gathers batches, which only those have that
// found nvcc. Part of libstoker_cuda.
#pragma once

#include "stoker/device/picture_gather.h"

namespace stoker::device {

// Starts the kernel on a cudaStream_t of the current device and answers with a cudaError_t, whose names are left to
// those who have CUDA's headers.
using CudaGather = int(const PictureGather& work, void* stream);
// Set by resident_cuda.cu while the library is loaded; null: it was built without nvcc.
inline CudaGather* cuda_gather = nullptr;

}  // namespace stoker::device

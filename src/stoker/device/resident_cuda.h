// SPDX-License-Identifier: Apache-2.0
// Between the CUDA backend, which every build has, and the kernel that gathers batches, which only those have that
// found nvcc. Part of libstoker_cuda.
#pragma once

#include <cuda_runtime_api.h>

#include "stoker/device/picture_gather.h"

namespace stoker::device {

// Starts the kernel on the stream, of the current device.
using CudaGather = cudaError_t(const PictureGather& work, cudaStream_t stream);
// Set by resident_cuda.cu while the library is loaded; null: it was built without nvcc.
inline CudaGather* cuda_gather = nullptr;

}  // namespace stoker::device

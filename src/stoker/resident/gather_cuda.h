// SPDX-License-Identifier: Apache-2.0
// Between the host's half of CUDA's gatherer and its kernel. Part of libstoker_cuda.
#pragma once

#include "stoker/resident/gather.h"

namespace stoker::resident {

// Starts the kernel on a cudaStream_t of the current device and answers with a cudaError_t.
int launch_gather(const ImageGather& work, void* stream);

}  // namespace stoker::resident

// SPDX-License-Identifier: Apache-2.0
// Interface between the host part of the CUDA gatherer and its kernel. Part of libstoker_cuda.
#pragma once

#include "stoker/resident/gather.h"

namespace stoker::resident {

// Starts the kernel on a cudaStream_t of the current device; returns a cudaError_t.
int launch_gather(const ImageGather& work, void* stream);

}  // namespace stoker::resident

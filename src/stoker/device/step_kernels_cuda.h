// SPDX-License-Identifier: Apache-2.0
// Interface between the CUDA backend and the two kernels of a step (core/step_work.h). Part of libstoker_cuda.
#pragma once

#include "stoker/core/step_work.h"

namespace stoker::device {

// Each starts its kernel on a cudaStream_t of the current device and returns a cudaError_t.
int launch_divide_terms(const core::LossWork& work, void* stream);
int launch_verdict(const core::VerdictWork& work, void* stream);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// The two kernels of a step: division of the loss terms by their normalisers, and the verdict before the update. Each
// replaces about ten operators on a few numbers, which take longer to start than to run. Both write only to given
// addresses, so that a CUDA graph can replay them.
#include <cuda_runtime_api.h>

#include "stoker/device/step_kernels_cuda.h"

namespace stoker::device {
namespace {

constexpr int kThreads = 256;

// One thread.
__global__ void divide_terms_kernel(core::LossWork work) { core::divide_terms(work); }

// One block: its threads sum the squares of the norms, always in the same order; the first thread makes the verdict.
__global__ void verdict_kernel(core::VerdictWork work) {
  __shared__ double squares[kThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < work.norm_count; i += kThreads) {
    sum += static_cast<double>(work.norms[i]) * work.norms[i];
  }
  squares[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      squares[threadIdx.x] += squares[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *work.divisor = static_cast<float>(core::decide(work, static_cast<float>(sqrt(squares[0]))));
  }
}

}  // namespace

int launch_divide_terms(const core::LossWork& work, void* stream) {
  divide_terms_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(work);
  return cudaGetLastError();
}

int launch_verdict(const core::VerdictWork& work, void* stream) {
  verdict_kernel<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(work);
  return cudaGetLastError();
}

}  // namespace stoker::device

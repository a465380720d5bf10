// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/gather_cuda.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "stoker/base/error.h"
#include "stoker/device/cuda_entry.h"
#include "stoker/resident/gatherer.h"

namespace stoker::resident {
namespace {

void gather_on_cuda(const ImageGather& work, c10::Device device) {
  const c10::DeviceIndex index = device.has_index() ? device.index() : c10::cuda::current_device();
  const c10::cuda::CUDAGuard guard(index);
  const auto status = static_cast<cudaError_t>(launch_gather(work, c10::cuda::getCurrentCUDAStream(index).stream()));
  if (status != cudaSuccess) {
    fail<DeviceError>("resident.gather", "the image kernel could not be started: {}", cudaGetErrorString(status));
  }
}

const device::CudaFunction kOffered(kCudaGatherer, reinterpret_cast<device::AnyFunction>(gather_on_cuda));

}  // namespace
}  // namespace stoker::resident

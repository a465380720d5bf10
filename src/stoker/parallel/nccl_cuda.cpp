// SPDX-License-Identifier: Apache-2.0
// Makes c10d's NCCL group for parallel/device_group.h. The one file with NCCL's headers; part of libstoker_cuda.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "stoker/device/cuda_entry.h"
#include "stoker/parallel/device_group.h"

namespace stoker::parallel {
namespace {

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                                            std::chrono::milliseconds timeout) {
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, ranks, options);
}

const device::CudaFunction kOffered(kNccl, reinterpret_cast<device::AnyFunction>(make_nccl));

}  // namespace
}  // namespace stoker::parallel

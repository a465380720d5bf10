// SPDX-License-Identifier: Apache-2.0
// Names for NVIDIA's profilers: while one of these lives, every operator and every phase of a step of this thread, and
// of the backward passes that it starts, is an NVTX range on the time line that Nsight Systems shows. Made by
// job::Session where the plan asks for it. One at a time.
#pragma once

namespace stoker::device {

class NvtxRanges {
 public:
  // DeviceError where torch cannot reach CUDA.
  NvtxRanges();
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// NVTX ranges for NVIDIA's profilers: while this object exists, every operator and every phase of a step on this
// thread, and of the backward passes that it starts, is a range on the time line of Nsight Systems. Made by
// job::Session if the plan says so. One at a time.
#pragma once

namespace stoker::device {

class NvtxRanges {
 public:
  // DeviceError if torch cannot use CUDA.
  NvtxRanges();
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;
};

}  // namespace stoker::device

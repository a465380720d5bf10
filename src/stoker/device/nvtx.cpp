// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/nvtx.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include "stoker/base/error.h"

namespace stoker::device {

namespace profiler = torch::autograd::profiler;

NvtxRanges::NvtxRanges() {
  try {
    profiler::enableProfiler(torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::NVTX), {},
                             {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE});
  } catch (const c10::Error& error) {
    fail<DeviceError>("device.nvtx", "NVTX ranges need CUDA: {}; set nvtx=off", error.what_without_backtrace());
  }
}

NvtxRanges::~NvtxRanges() {
  try {
    (void)profiler::disableProfiler();
  } catch (const c10::Error&) {  // the device is lost, and with it the time line
  }
}

}  // namespace stoker::device

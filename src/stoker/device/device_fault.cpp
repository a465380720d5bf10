// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/device_fault.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "stoker/base/error.h"

namespace stoker::device {
namespace {

constexpr std::array<std::string_view, 11> kTexts = {
    "CUDA error",                  // C10_CUDA_CHECK, if the type was lost on the way
    "CUDA driver",                 // a call of the driver; a version that is too old
    "CUDA initialization",         // torch's lazy start
    "CUDA unknown error",          // the same, after a device was lost
    "Cannot initialize CUDA",      // the same, without the CUDA library
    "No CUDA GPUs are available",  // the same
    "CUDA-capable device",         // the CUDA runtime: none is detected, or all are busy
    "CUBLAS_STATUS_",              // a call of cuBLAS
    "CUDNN_STATUS_",               // a call of cuDNN
    "cuDNN error",                 // the same
    "NCCL error"};                 // a call of NCCL

}  // namespace

bool is_device_fault(const std::exception& error) {
  if (dynamic_cast<const DeviceError*>(&error) != nullptr ||
      dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr) {
    return true;
  }
  if (dynamic_cast<const Error*>(&error) != nullptr) {  // our errors may quote a file name
    return false;
  }
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  return std::ranges::any_of(kTexts, [&](std::string_view each) { return text.find(each) != std::string_view::npos; });
}

}  // namespace stoker::device

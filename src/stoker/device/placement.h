// SPDX-License-Identifier: Apache-2.0
// Which device a run uses, and a batch moved to it. Used by job; one thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "stoker/core/batch.h"

namespace stoker::device {

struct DeviceChoice {
  c10::Device device;
  std::string reason;  // one line for the plan, e.g. "no CUDA: no driver library libcuda.so.1 found"
};

// wanted: "auto" (a GPU if there is one), "cpu", "cuda" (the first GPU) or "cuda:N". ConfigError for anything else,
// DeviceError in words if the device is not there. load_cuda() must have been called.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted);

// The same batch with every field's values on the device; offsets of ragged fields stay on the CPU, as Batch demands.
// Waits for the copies, as a page-locked batch's memory may go back to its loader right after: Prefetcher is the way
// that does not. On its own device the batch passes through, storage and all.
[[nodiscard]] core::Batch move_batch(core::Batch batch, c10::Device device);

}  // namespace stoker::device

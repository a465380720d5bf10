// SPDX-License-Identifier: Apache-2.0
// Chooses the device of a run, and moves a batch to it. Used by job; one thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "stoker/core/batch.h"

namespace stoker::device {

struct DeviceChoice {
  c10::Device device;
  std::string reason;  // one line for the plan, e.g. "no CUDA: libcuda.so.1 not found"
};

// wanted: "auto" (a GPU if available), "cpu", "cuda" (the first GPU) or "cuda:N". ConfigError for anything else,
// DeviceError with the reason if the device is missing. load_cuda() must have been called.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted);

// What a rank passes to choose_device(): for "auto" and "cuda" the GPU with the number of the rank on its machine, or
// the only one, if a starter shows each rank one of its own; anything else as it is. gpus: that this process sees.
// ConfigError if there are several, but fewer than ranks.
[[nodiscard]] std::string device_of_rank(const std::string& wanted, int rank_here, int gpus);

// The same batch with the values of every field on the device; offsets of ragged fields stay on the CPU, as Batch
// requires. Waits for the copies, since a page-locked batch may return to its loader right after; Prefetcher does not
// wait. A batch that is already on the device is returned unchanged, without a copy.
[[nodiscard]] core::Batch move_batch(core::Batch batch, c10::Device device);

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Which device a run uses, and batches on their way to it. Used by job; one thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>

#include "stoker/core/batch_source.h"

namespace stoker::device {

struct DeviceChoice {
  c10::Device device;
  std::string reason;  // one line for the plan, e.g. "no CUDA: no driver library libcuda.so.1 found"
};

// wanted: "auto" (a GPU if there is one), "cpu", "cuda" (the first GPU) or "cuda:N". ConfigError for anything else,
// DeviceError in words if the device is not there. load_cuda() must have been called.
[[nodiscard]] DeviceChoice choose_device(const std::string& wanted);

// The same batch with every field's values on the device; offsets of ragged fields stay on the CPU, as Batch demands.
// Copies do not wait where the memory is pinned. On its own device the batch passes through, storage and all.
[[nodiscard]] core::Batch move_batch(core::Batch batch, c10::Device device);

// A source whose batches arrive on the device. Copies on the current stream; the prefetcher with a copy stream and
// pinned slots will stand in the same place.
class PlacedSource final : public core::BatchSource {
 public:
  PlacedSource(std::unique_ptr<core::BatchSource> inner, c10::Device device)
      : inner_(std::move(inner)), device_(device) {}
  [[nodiscard]] std::optional<core::Batch> next() override;

 private:
  std::unique_ptr<core::BatchSource> inner_;
  c10::Device device_;
};

}  // namespace stoker::device

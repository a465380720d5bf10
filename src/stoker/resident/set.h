// SPDX-License-Identifier: Apache-2.0
// Images on a device, and batches made from them there. Used by ResidentSource; filled by one thread, then used by one
// thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <stop_token>

#include "stoker/augment/resident_images.h"
#include "stoker/device/copy_stream.h"
#include "stoker/resident/gatherer.h"

namespace stoker::resident {

class ResidentSet {
 public:
  // Allocates memory for the images. stream: of the device, for the copies; null for a CPU. DeviceError if the device
  // cannot make batches.
  ResidentSet(const augment::ImageShape& shape, c10::Device device, std::unique_ptr<device::CopyStream> stream);

  // Copies all images, some at a time, in parallel with the device's current stream, and waits until they have arrived.
  // False if it was stopped. DataError for an unreadable image.
  [[nodiscard]] bool fill(const augment::ResidentImages& images, const std::stop_token& stopping);
  // Called by the thread that will request batches, before the first one.
  void used_here();
  // Returns uint8 [rows, height, width, channels]; windows: int32 [rows, 4] on the device, one
  // augment::WindowDraw per row. Does not wait.
  [[nodiscard]] at::Tensor make_batch(const at::Tensor& windows) const;

 private:
  augment::ImageShape shape_;
  c10::Device device_;
  Gatherer* gather_;
  std::unique_ptr<device::CopyStream> stream_;
  at::Tensor pixels_;
};

}  // namespace stoker::resident

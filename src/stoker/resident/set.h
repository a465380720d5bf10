// SPDX-License-Identifier: Apache-2.0
// Images that lie on a device, and batches made of them there. Used by ResidentSource; filled by one thread, then
// asked by one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <stop_token>

#include "stoker/augment/resident_images.h"
#include "stoker/device/copy_stream.h"
#include "stoker/resident/gatherer.h"

namespace stoker::resident {

class ResidentSet {
 public:
  // Room for the images. stream: for the copies, of the device; null for a CPU. DeviceError where the device has no
  // way to make batches.
  ResidentSet(const augment::ImageShape& shape, c10::Device device, std::unique_ptr<device::CopyStream> stream);

  // Copies all images, some at a time, beside the work of the device's current stream; they are there when it
  // returns. False if it was stopped. DataError for an image that cannot be had.
  [[nodiscard]] bool fill(const augment::ResidentImages& images, const std::stop_token& stopping);
  // By the thread that will ask for batches, before the first of them.
  void used_here();
  // uint8 [rows, height, width, channels]; windows: int32 [rows, 4] on the device, WindowDraws. Nobody waits.
  [[nodiscard]] at::Tensor make_batch(const at::Tensor& windows) const;

 private:
  augment::ImageShape shape_;
  c10::Device device_;
  Gatherer* gather_;
  std::unique_ptr<device::CopyStream> stream_;
  at::Tensor pixels_;
};

}  // namespace stoker::resident

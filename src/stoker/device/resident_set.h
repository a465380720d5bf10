// SPDX-License-Identifier: Apache-2.0
// Pictures that lie on a device, and batches made of them there. Used by ResidentSource; filled by one thread, then
// asked by one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <stop_token>

#include "stoker/augment/resident_pictures.h"
#include "stoker/device/copy_stream.h"

namespace stoker::device {

class ResidentSet {
 public:
  // Room for the pictures. stream: for the copies, of the device; null for a CPU. DeviceError where the device has no
  // way to make batches.
  ResidentSet(const augment::PictureShape& shape, c10::Device device, std::unique_ptr<CopyStream> stream);

  // Copies all pictures, some at a time, beside the work of the device's current stream; they are there when it
  // returns. False if it was stopped. DataError for a picture that cannot be had.
  [[nodiscard]] bool fill(const augment::ResidentPictures& pictures, const std::stop_token& stopping);
  // By the thread that will ask for batches, before the first of them.
  void used_here();
  // uint8 [rows, height, width, channels]; windows: int32 [rows, 4] on the device, WindowDraws. Nobody waits.
  [[nodiscard]] at::Tensor make_batch(const at::Tensor& windows) const;

 private:
  augment::PictureShape shape_;
  c10::Device device_;
  std::unique_ptr<CopyStream> stream_;
  at::Tensor pixels_;
};

}  // namespace stoker::device

// SPDX-License-Identifier: Apache-2.0
// Checks the first batch before training: model, inputs and targets on one device, with the dtypes and ranges that the
// loss needs. Gives clear errors where torch would fail with a kernel assertion minutes later. Called once by train
// before step 1; it waits for the device. One thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "stoker/core/trainable.h"

namespace stoker::device {

// Facts of the task about its batches. An empty name or a 0 skips the check.
struct BatchFacts {
  std::string input = "image";    // field with the samples
  std::string target = "target";  // field with class indices, int64, 0 ... classes-1
  std::int64_t classes = 0;
  std::int64_t channels = 0;      // of the first layer of the model
  std::int64_t channel_dim = -1;  // of the input field: -1 for [B,H,W,C], 1 for [B,C,H,W]
};

// DeviceError: parameters or buffers spread over devices, a field on another device than the model.
// DataError: an empty batch, a target out of range, inputs that are not finite (after Trainable::inputs).
// ConfigError: a target that is not int64, a wrong number of channels, nothing to train.
void check_batch(const core::Trainable& model, const core::Batch& batch, c10::Device device, const BatchFacts& facts);

}  // namespace stoker::device

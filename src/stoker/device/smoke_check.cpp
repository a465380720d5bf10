// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/smoke_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/core/text.h"

namespace stoker::device {
namespace {

using core::describe;

void check_model(const core::Trainable& model, c10::Device device) {
  bool trains = false;
  for (const core::Parameter& parameter : model.parameters()) {
    if (parameter.tensor.device() != device) {
      fail<DeviceError>("device.smoke_check",
                        "parameter {} is {}, but the run is on {}; move the whole model there first", parameter.name,
                        describe(parameter.tensor), device.str());
    }
    trains = trains || parameter.tensor.requires_grad();
  }
  if (!trains) {
    fail<ConfigError>("device.smoke_check",
                      "nothing to train: none of the {} parameters of the model requires grad; "
                      "freeze fewer groups",
                      model.parameters().size());
  }
  for (const core::NamedTensor& buffer : model.buffers()) {
    if (buffer.tensor.device() != device) {
      fail<DeviceError>("device.smoke_check", "buffer {} is {}, but the run is on {}; move the whole model there first",
                        buffer.name, describe(buffer.tensor), device.str());
    }
  }
}

void check_fields(const core::Batch& batch, c10::Device device) {
  if (batch.size() == 0) {
    fail<DataError>("device.smoke_check", "the first batch is empty: the source has no samples");
  }
  for (const core::Field& field : batch.fields()) {
    if (field.values.device() != device) {
      fail<DeviceError>("device.smoke_check",
                        "field \"{}\" is {}, but the model is on {}; wrap the source with device::prefetched()",
                        field.name, describe(field.values), device.str());
    }
  }
}

void check_channels(const core::Batch& batch, const BatchFacts& facts) {
  if (facts.input.empty() || facts.channels == 0) {
    return;
  }
  const at::Tensor& input = batch[facts.input];
  const std::int64_t dim = facts.channel_dim < 0 ? input.dim() + facts.channel_dim : facts.channel_dim;
  if (dim < 0 || dim >= input.dim() || input.size(dim) != facts.channels) {
    fail<ConfigError>("device.smoke_check",
                      "the model takes {} channels, but \"{}\" is {} with channels in dimension {}", facts.channels,
                      facts.input, describe(input), facts.channel_dim);
  }
}

// The first target out of range, with its sample; the only place that waits for the device on purpose.
void check_targets(const core::Batch& batch, const BatchFacts& facts) {
  if (facts.target.empty()) {
    return;
  }
  const at::Tensor& target = batch[facts.target];
  if (target.scalar_type() != at::kLong) {
    fail<ConfigError>("device.smoke_check", "\"{}\" is {}; the loss needs class indices as int64", facts.target,
                      describe(target));
  }
  if (facts.classes == 0) {
    return;
  }
  const at::Tensor values = target.cpu().contiguous();
  const auto* first = values.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    if (first[i] < 0 || first[i] >= facts.classes) {
      const std::int64_t sample = i * batch.size() / values.numel();
      fail<DataError>("device.smoke_check", "\"{}\" of sample {} is {}, but the model has {} classes; expected 0 to {}",
                      facts.target, batch.indices()[static_cast<std::size_t>(sample)], first[i], facts.classes,
                      facts.classes - 1);
    }
  }
}

void check_inputs(const core::Trainable& model, const core::Batch& batch, c10::Device device) {
  const at::NoGradGuard no_grad;
  const core::TensorList inputs = model.inputs(batch);
  if (inputs.empty()) {
    fail<ConfigError>("device.smoke_check", "the task makes no model inputs from the batch");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    if (input.device() != device) {
      fail<DeviceError>("device.smoke_check", "model input {} is {}, but the model is on {}", i, describe(input),
                        device.str());
    }
    if (input.is_floating_point() && !at::isfinite(input).all().item<bool>()) {
      fail<DataError>("device.smoke_check",
                      "model input {} ({}) contains values that are not finite; "
                      "check the data and the mean and deviation used for normalisation",
                      i, describe(input));
    }
  }
}

}  // namespace

void check_batch(const core::Trainable& model, const core::Batch& batch, c10::Device device, const BatchFacts& facts) {
  check_model(model, device);
  check_fields(batch, device);
  check_channels(batch, facts);
  check_targets(batch, facts);
  check_inputs(model, batch, device);
}

}  // namespace stoker::device

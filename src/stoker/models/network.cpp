// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "stoker/base/error.h"

namespace stoker::models {

core::TensorList Network::norm_buffers() const {
  core::TensorList buffers;
  for (const at::Tensor& each : {statistics_, count_}) {
    if (each.defined()) {
      buffers.push_back(each);
    }
  }
  return buffers;
}

core::TensorList Network::forward_segment(int segment, core::TensorList inputs) const {
  return segments_.at(segment).forward(std::move(inputs));
}

at::Tensor Network::forward(const at::Tensor& input) const {
  core::TensorList values{input};
  for (int segment = 0; segment < segments(); ++segment) {
    values = forward_segment(segment, std::move(values));
  }
  return values.at(0);
}

void Network::set_training(bool on) {
  training_ = on;
  for (const Segment& segment : segments_) {
    segment.mode->training = on;
  }
}

std::vector<std::string> Network::freeze_groups() const {
  std::vector<std::string> groups;
  for (const Segment& segment : segments_) {
    if (groups.empty() || groups.back() != segment.group) {
      groups.push_back(segment.group);
    }
  }
  return groups;
}

void Network::set_frozen(int first_groups) {
  const std::vector<std::string> groups = freeze_groups();
  if (first_groups < 0 || first_groups > std::ssize(groups)) {
    fail<ConfigError>("models.network", "freeze must be 0 ... {}, got {}; the network's groups are {}", groups.size(),
                      first_groups, fmt::join(groups, ", "));
  }
  int group = -1;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    group += i == 0 || segments_[i].group != segments_[i - 1].group ? 1 : 0;
    segments_[i].mode->frozen = group < first_groups;
  }
  for (const core::Parameter& parameter : parameters_) {
    const bool frozen = segments_[static_cast<std::size_t>(parameter.segments.front())].mode->frozen;
    if (!frozen && frozen_here_.erase(parameter.name) > 0) {
      parameter.tensor.set_requires_grad(true);
    } else if (frozen && parameter.tensor.requires_grad()) {
      frozen_here_.insert(parameter.name);
      parameter.tensor.set_requires_grad(false);
    }
  }
}

void Network::freeze_statistics(bool on) {
  for (const Segment& segment : segments_) {
    segment.mode->frozen_statistics = on;
  }
}

core::NormCount Network::norms_by_batch() const {
  core::NormCount result;
  for (const Segment& segment : segments_) {
    if (!segment.mode->frozen && !segment.mode->frozen_statistics && counts_.empty()) {
      for (const std::int64_t channels : segment.norms) {
        ++result.norms;
        result.channels = std::max(result.channels, channels);
      }
    }
  }
  return result;
}

void Network::synchronise_norms(core::NormExchange* ranks) {
  for (const Segment& segment : segments_) {
    segment.mode->ranks = ranks;
  }
}

void Network::flatten_statistics(at::Device device, at::ScalarType dtype) {
  std::int64_t total = 0;
  for (const core::NamedTensor& buffer : buffers_) {
    if (constants_.contains(buffer.name)) {
      buffer.tensor.set_data(buffer.tensor.to(device, dtype));
    } else {
      total += buffer.tensor.numel();
    }
  }
  if (!counts_.empty()) {
    count_ = at::empty({std::ssize(counts_)}, at::TensorOptions().device(device).dtype(at::kLong));
    for (std::int64_t i = 0; i < count_.size(0); ++i) {
      const at::Tensor view = count_.select(0, i);
      view.copy_(counts_[static_cast<std::size_t>(i)]);
      counts_[static_cast<std::size_t>(i)].set_data(view);
    }
  }
  if (total == 0) {
    return;
  }
  statistics_ = at::empty({total}, at::TensorOptions().device(device).dtype(dtype));
  std::int64_t offset = 0;
  for (const core::NamedTensor& buffer : buffers_) {
    if (constants_.contains(buffer.name)) {
      continue;
    }
    at::Tensor view = statistics_.narrow(0, offset, buffer.tensor.numel());
    view.copy_(buffer.tensor);
    buffer.tensor.set_data(view);
    offset += view.numel();
  }
}

void Network::to(at::Device device, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  for (core::Parameter& parameter : parameters_) {
    parameter.tensor.mutable_grad().reset();
    parameter.tensor.set_data(parameter.tensor.detach().to(device, dtype));
  }
  flatten_statistics(device, dtype == at::kDouble ? at::kDouble : at::kFloat);
}

bool Network::lay_out(at::MemoryFormat format) {
  const at::NoGradGuard no_grad;
  bool convolutions = false;
  for (const core::Parameter& parameter : parameters_) {
    if (parameter.role != core::Role::kConv || parameter.tensor.dim() != 4) {
      continue;
    }
    convolutions = true;
    // A 1 x 1 kernel has the same memory order in both layouts, but its strides tell the convolution which one is
    // meant.
    if (parameter.tensor.suggest_memory_format() != format || !parameter.tensor.is_contiguous(format)) {
      parameter.tensor.mutable_grad().reset();
      parameter.tensor.set_data(parameter.tensor.detach().clone(format));
    }
  }
  return convolutions;
}

at::Device Network::device() const { return parameters_.at(0).tensor.device(); }

std::int64_t flops(Network& network, at::IntArrayRef sample_shape) {
  const at::NoGradGuard no_grad;
  const bool was_training = network.training();
  std::vector<std::int64_t> shape{1};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  const at::Tensor weight = network.parameters().at(0).tensor;
  network.set_training(false);
  *network.meter_ = {.on = true, .flops = 0};
  try {
    (void)network.forward(at::zeros(shape, at::TensorOptions().device(weight.device()).dtype(weight.scalar_type())));
  } catch (...) {
    network.meter_->on = false;
    network.set_training(was_training);
    throw;
  }
  network.meter_->on = false;
  network.set_training(was_training);
  return network.meter_->flops;
}

}  // namespace stoker::models

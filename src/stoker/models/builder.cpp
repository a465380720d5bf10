// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/builder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"
#include "stoker/models/init.h"

namespace stoker::models {

NetworkBuilder::NetworkBuilder(std::uint64_t seed) : seed_(seed), network_(new Network) {
  network_->meter_ = std::make_shared<FlopMeter>();
  // A count of batches, which only PyTorch's momentum=None would use.
  network_->read_name_ = [](const std::string& name) { return name.ends_with("num_batches_tracked") ? "" : name; };
}

void NetworkBuilder::begin_segment(std::string name, std::string group) {
  Segment segment;
  segment.group = group.empty() ? name : std::move(group);
  segment.name = std::move(name);
  segment.mode = std::make_shared<SegmentMode>();
  network_->segments_.push_back(std::move(segment));
}

Segment& NetworkBuilder::current_segment(std::string_view what) {
  if (network_->segments_.empty()) {
    fail<ConfigError>("models.builder", "\"{}\" needs a segment: call begin_segment first", what);
  }
  return network_->segments_.back();
}

void NetworkBuilder::end_segment(std::function<at::Tensor(const at::Tensor&)> forward) {
  current_segment("a forward").forward = [forward = std::move(forward)](core::TensorList inputs) {
    // The list is emptied first, so that a layer's input is freed as soon as it is not needed.
    const at::Tensor x = std::move(inputs.at(0));
    inputs.clear();
    return core::TensorList{forward(x)};
  };
}

void NetworkBuilder::end_list_segment(SegmentForward forward) {
  current_segment("a forward").forward = std::move(forward);
}

void NetworkBuilder::end_segment_of(std::vector<InnerSegment> parts) {
  current_segment("a forward").inner = parts;
  end_list_segment([parts = std::move(parts)](core::TensorList values) {
    for (const InnerSegment& part : parts) {
      values = part.forward(std::move(values));
    }
    return values;
  });
}

void NetworkBuilder::tie(const at::Tensor& parameter) {
  for (core::Parameter& each : network_->parameters_) {
    if (each.tensor.is_same(parameter)) {
      if (each.segments.back() != network_->segments() - 1) {
        each.segments.push_back(network_->segments() - 1);
      }
      return;
    }
  }
  fail<ConfigError>("models.builder", "a tied parameter must belong to an earlier segment");
}

at::Tensor NetworkBuilder::add_parameter(const std::string& name, at::Tensor tensor, core::Role role) {
  keep_parameter(name, tensor.set_requires_grad(true), role);
  return tensor;
}

void NetworkBuilder::keep_parameter(const std::string& name, const at::Tensor& tensor, core::Role role) {
  (void)current_segment(name);
  for (const core::Parameter& other : network_->parameters_) {
    if (other.name == name) {
      fail<ConfigError>("models.builder", "two parameters are called \"{}\"", name);
    }
  }
  network_->parameters_.push_back({name, tensor, role, {network_->segments() - 1}});
}

Conv2d NetworkBuilder::conv(const std::string& name, const ConvShape& shape) {
  at::Tensor weight = at::empty({shape.out, shape.in, shape.kernel, shape.kernel}, at::kFloat);
  const auto fan_out = static_cast<double>(shape.out * shape.kernel * shape.kernel);
  fill_normal(weight, shape.gain * std::sqrt(2 / fan_out), seed_, name + ".weight");
  // Filled in the order of its elements, then stored in the memory order of the convolutions.
  weight = weight.contiguous(at::MemoryFormat::ChannelsLast);
  add_parameter(name + ".weight", weight, core::Role::kConv);
  at::Tensor bias;
  if (shape.bias) {
    bias = at::zeros({shape.out}, at::kFloat);
    if (!shape.zero_bias) {
      fill_uniform(bias, 1 / std::sqrt(static_cast<double>(shape.in * shape.kernel * shape.kernel)), seed_,
                   name + ".bias");
    }
    add_parameter(name + ".bias", bias, core::Role::kBias);
  }
  return {.weight = weight, .bias = bias, .stride = shape.stride, .padding = shape.padding, .meter = network_->meter_};
}

Linear NetworkBuilder::linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Linear layer{at::empty({out, in}, at::kFloat), {}, network_->meter_};
  fill_uniform(layer.weight, bound, seed_, name + ".weight");
  add_parameter(name + ".weight", layer.weight, core::Role::kLinear);
  if (bias) {
    layer.bias = at::empty({out}, at::kFloat);
    fill_uniform(layer.bias, bound, seed_, name + ".bias");
    add_parameter(name + ".bias", layer.bias, core::Role::kBias);
  }
  return layer;
}

Linear NetworkBuilder::normal_linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation) {
  at::Tensor weight = at::empty({out, in}, at::kFloat);
  fill_normal(weight, deviation, seed_, name + ".weight");
  add_parameter(name + ".weight", weight, core::Role::kLinear);
  return {weight, bias(name + ".bias", out), network_->meter_};
}

at::Tensor NetworkBuilder::bias(const std::string& name, std::int64_t width) {
  return add_parameter(name, at::zeros({width}, at::kFloat), core::Role::kBias);
}

Projection NetworkBuilder::projection(const std::string& name, std::int64_t in, std::int64_t out, double deviation) {
  Projection layer{at::empty({in, out}, at::kFloat), at::zeros({out}, at::kFloat), network_->meter_};
  fill_normal(layer.weight, deviation, seed_, name + ".weight");
  add_parameter(name + ".weight", layer.weight, core::Role::kLinear);
  add_parameter(name + ".bias", layer.bias, core::Role::kBias);
  return layer;
}

LayerNorm NetworkBuilder::layer_norm(const std::string& name, std::int64_t width, double eps) {
  return {add_parameter(name + ".weight", at::ones({width}, at::kFloat), core::Role::kNorm),
          add_parameter(name + ".bias", at::zeros({width}, at::kFloat), core::Role::kNorm), eps};
}

Embedding NetworkBuilder::embedding(const std::string& name, std::int64_t rows, std::int64_t width, double deviation) {
  at::Tensor weight = at::empty({rows, width}, at::kFloat);
  fill_normal(weight, deviation, seed_, name + ".weight");
  return {add_parameter(name + ".weight", weight, core::Role::kEmbedding)};
}

Dropout NetworkBuilder::dropout(double probability) {
  Segment& segment = current_segment("dropout");
  segment.draws |= probability > 0;
  return {probability, segment.mode};
}

BatchNorm2d NetworkBuilder::batch_norm(const std::string& name, std::int64_t channels, double weight) {
  BatchNorm2d layer;
  layer.weight = add_parameter(name + ".weight", at::full({channels}, weight, at::kFloat), core::Role::kNorm);
  layer.bias = add_parameter(name + ".bias", at::zeros({channels}, at::kFloat), core::Role::kNorm);
  layer.running_mean = at::zeros({channels}, at::kFloat);
  layer.running_var = at::ones({channels}, at::kFloat);
  layer.mode = current_segment(name).mode;
  current_segment(name).norms.push_back(channels);
  network_->buffers_.push_back({name + ".running_mean", layer.running_mean});
  network_->buffers_.push_back({name + ".running_var", layer.running_var});
  return layer;
}

GroupNorm NetworkBuilder::group_norm(const std::string& name, std::int64_t channels, std::int64_t groups) {
  if (groups < 1 || channels % groups != 0) {
    fail<ConfigError>("models.builder", "\"{}\": {} groups do not divide {} channels", name, groups, channels);
  }
  return {add_parameter(name + ".weight", at::ones({channels}, at::kFloat), core::Role::kNorm),
          add_parameter(name + ".bias", at::zeros({channels}, at::kFloat), core::Role::kNorm), groups};
}

std::function<at::Tensor(const at::Tensor&)> NetworkBuilder::conv_norm(ConvNorm kind, const std::string& name,
                                                                       std::int64_t channels) {
  if (kind == ConvNorm::kBatch) {
    return batch_norm(name, channels);
  }
  constexpr std::int64_t kGroups = 32, kLeastChannels = 2;
  std::int64_t groups = std::clamp<std::int64_t>(channels / kLeastChannels, 1, kGroups);
  while (channels % groups != 0) {
    --groups;
  }
  return group_norm(name, channels, groups);
}

void NetworkBuilder::read_names(std::function<std::string(const std::string& name)> here) {
  network_->read_name_ = std::move(here);
}

std::unique_ptr<Network> NetworkBuilder::finish() {
  for (const Segment& segment : network_->segments_) {
    if (!segment.forward) {
      fail<ConfigError>("models.builder", "segment \"{}\" was never ended", segment.name);
    }
  }
  for (const core::NamedTensor& buffer : network_->buffers_) {
    if (at::isinf(buffer.tensor).any().item<bool>()) {
      network_->constants_.insert(buffer.name);
    }
  }
  network_->flatten_statistics(at::kCPU, at::kFloat);
  return std::move(network_);
}

}  // namespace stoker::models

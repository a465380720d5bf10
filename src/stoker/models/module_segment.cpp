// SPDX-License-Identifier: Apache-2.0
// NetworkBuilder::module_segment: the only unit that includes torch::nn.
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

constexpr std::string_view kWhere = "models.module";

template <typename... Kinds>
bool is_any(const torch::nn::Module& module) {
  return ((dynamic_cast<const Kinds*>(&module) != nullptr) || ...);
}

// The role of a parameter that the module owns directly.
core::Role role_of(const torch::nn::Module& module, const std::string& name, const at::Tensor& tensor) {
  namespace nn = torch::nn;
  if (is_any<nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl,
             nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl, nn::LayerNormImpl, nn::GroupNormImpl>(module)) {
    return core::Role::kNorm;
  }
  if (is_any<nn::EmbeddingImpl, nn::EmbeddingBagImpl>(module)) {
    return core::Role::kEmbedding;
  }
  if (tensor.dim() <= 1) {
    return name == "weight" ? core::Role::kNorm : core::Role::kBias;  // a gain, or an offset
  }
  return tensor.dim() >= 3 ? core::Role::kConv : core::Role::kLinear;
}

// The mode of the batch norms in the module.
void set_batch_norms(torch::nn::Module& module, bool training) {
  namespace nn = torch::nn;
  if (is_any<nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl>(module)) {
    if (module.is_training() != training) {
      module.train(training);
    }
    return;
  }
  for (const std::shared_ptr<nn::Module>& child : module.children()) {
    set_batch_norms(*child, training);
  }
}

}  // namespace

void NetworkBuilder::module_segment(std::string name, std::shared_ptr<torch::nn::Module> module,
                                    std::function<at::Tensor(const at::Tensor&)> forward, const std::string& prefix) {
  begin_segment(std::move(name));
  segment_draws();  // a module may draw random numbers
  bool has_parameter = false;
  for (const auto& child : module->named_modules()) {
    const std::string path = prefix + (child.key().empty() ? "" : child.key() + ".");
    for (const auto& parameter : child.value()->named_parameters(/*recurse=*/false)) {
      has_parameter = true;
      const auto same = [&](const core::Parameter& each) { return each.tensor.is_same(parameter.value()); };
      if (std::ranges::any_of(network_->parameters_, same)) {
        tie(parameter.value());  // updated once
        continue;
      }
      keep_parameter(path + parameter.key(), parameter.value(),
                     role_of(*child.value(), parameter.key(), parameter.value()));
    }
    for (const auto& buffer : child.value()->named_buffers(/*recurse=*/false)) {
      if (buffer.key() == "num_batches_tracked") {
        network_->counts_.push_back(buffer.value());
        continue;
      }
      if (!buffer.value().is_floating_point()) {
        fail<ConfigError>(kWhere,
                          "buffer \"{}\" of the module is not a floating-point tensor; create it in forward instead",
                          path + buffer.key());
      }
      network_->buffers_.push_back({path + buffer.key(), buffer.value()});
    }
  }
  if (!has_parameter) {
    fail<ConfigError>(kWhere, "the module of segment \"{}\" has no parameters; register its parts with register_module",
                      network_->segments_.back().name);
  }
  const std::shared_ptr<const SegmentMode> mode = network_->segments_.back().mode;
  end_segment([module = std::move(module), forward = std::move(forward), mode,
               were_frozen = false](const at::Tensor& x) mutable {
    const bool training = mode->training && !mode->frozen;
    if (module->is_training() != training) {
      module->train(training);
    }
    if (mode->frozen_statistics) {
      set_batch_norms(*module, false);
    } else if (were_frozen) {
      module->train(training);  // a module's own train() decides again
    }
    were_frozen = mode->frozen_statistics;
    return forward(x);
  });
}

}  // namespace stoker::models

// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/stages.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/host_allocator.h"
#include "stoker/parallel/tensor_pack.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.stages";
constexpr std::int64_t kMessage = std::int64_t{32} << 20;  // bytes of one broadcast, about: the pack is held twice

// "layer1.0.bn1." of "layer1.0.bn1.running_mean".
std::string_view module_of(std::string_view name) { return name.substr(0, name.rfind('.') + 1); }

// The segments of the module that has this buffer; null: no parameter is in it.
const std::vector<int>* segments_of_module(const core::Trainable& model, std::string_view buffer) {
  const std::string_view module = module_of(buffer);
  for (const core::Parameter& each : model.parameters()) {
    if (module_of(each.name) == module) {
      return &each.segments;
    }
  }
  return nullptr;
}

std::vector<int> bounds_of(core::Communicator& ranks, const core::Trainable& model, const std::vector<int>& firsts) {
  std::vector<int> bounds{0};
  bounds.insert(bounds.end(), firsts.begin(), firsts.end());
  bounds.push_back(model.segments());
  if (std::ranges::adjacent_find(bounds, std::greater_equal()) != bounds.end()) {
    fail<ConfigError>(kWhere, "stages cannot begin at segments {} of a model with {} segments",
                      fmt::join(bounds.begin(), bounds.end() - 1, ", "), model.segments());
  }
  const int stages = static_cast<int>(bounds.size()) - 1;
  if (ranks.size() % stages != 0) {
    fail<ConfigError>(kWhere, "{} ranks are no whole number of pipelines of {} stages; give a multiple of {} ranks",
                      ranks.size(), stages, stages);
  }
  return bounds;
}

std::string text_of(const at::Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()), static_cast<std::size_t>(bytes.numel())};
}

at::Tensor bytes_of(std::string& text) { return at::from_blob(text.data(), {std::ssize(text)}, at::kByte); }

at::Tensor two_numbers(std::int64_t first, std::int64_t second) {
  at::Tensor numbers = at::empty({2}, at::kLong);
  numbers.mutable_data_ptr<std::int64_t>()[0] = first;
  numbers.mutable_data_ptr<std::int64_t>()[1] = second;
  return numbers;
}

}  // namespace

Stages::Stages(core::Communicator& ranks, const core::Trainable& model, const std::vector<int>& firsts)
    : bounds_(bounds_of(ranks, model, firsts)),
      stage_(ranks.rank() % count()),
      pipeline_(ranks.split(ranks.rank() / count())),
      replicas_(ranks.split(stage_)) {
  for (const core::Parameter& each : model.parameters()) {
    parameter_stages_.push_back(stage_of(each));
    if (parameter_stages_.back() == stage_) {
      own_parameters_.push_back(each);
    }
  }
  find_statistics(model);
}

int Stages::stage_of(const core::Parameter& parameter) const {
  std::optional<int> stage;
  for (const int segment : parameter.segments) {
    const int here = static_cast<int>(std::ranges::upper_bound(bounds_, segment) - bounds_.begin()) - 1;
    if (stage && *stage != here) {
      fail<ConfigError>(kWhere,
                        "segments of stage {} and of stage {} use \"{}\", but its gradient must be in one of them; cut "
                        "the model elsewhere",
                        *stage + 1, here + 1, printable(parameter.name));
    }
    stage = here;
  }
  if (!stage) {
    fail<ConfigError>(kWhere, "no segment uses \"{}\"", printable(parameter.name));
  }
  return *stage;
}

void Stages::find_statistics(const core::Trainable& model) {
  const core::TensorList all = model.norm_buffers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_floating_point()) {
      continue;
    }
    own_statistics_.push_back(at::zeros(all[i].sizes(), all[i].options().dtype(at::kBool)));
    at::Tensor own = own_statistics_.back().view({-1});
    for (const core::NamedTensor& each : model.buffers()) {
      if (!each.tensor.is_alias_of(all[i])) {
        continue;
      }
      const std::vector<int>* const segments = segments_of_module(model, each.name);
      if (segments == nullptr) {
        fail<ConfigError>(kWhere, "no parameter is in the module of \"{}\", so it is not known which stage computes it",
                          printable(each.name));
      }
      Statistic part{i, each.tensor.storage_offset() - all[i].storage_offset(), each.tensor.numel(), 0};
      part.stage = stage_of({each.name, {}, core::Role::kNorm, *segments});
      if (part.stage == stage_) {
        own.narrow(0, part.begin, part.numel).fill_(true);
      }
      statistics_.push_back(part);
    }
  }
}

void Stages::share(const core::TensorList& parameters, const core::TensorList& norm_buffers) {
  const at::NoGradGuard no_grad;
  for (int stage = 0; stage < count(); ++stage) {
    core::TensorList tensors;
    std::int64_t bytes = 0;
    const auto add = [&](at::Tensor tensor) {
      bytes += static_cast<std::int64_t>(tensor.nbytes());
      tensors.push_back(std::move(tensor));
      if (bytes >= kMessage) {
        broadcast(std::exchange(tensors, {}), stage);
        bytes = 0;
      }
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameter_stages_[i] == stage) {
        add(parameters[i].detach());
      }
    }
    for (const Statistic& each : statistics_) {
      if (each.stage == stage) {
        add(norm_buffers[each.buffer].view({-1}).narrow(0, each.begin, each.numel));
      }
    }
    broadcast(tensors, stage);
  }
}

void Stages::broadcast(const core::TensorList& tensors, int stage) {
  if (tensors.empty()) {
    return;
  }
  const ListForm form = form_of(tensors);
  at::Tensor message = stage_ == stage ? pack(form, &tensors) : at::empty({pack_bytes(form)}, at::kByte);
  pipeline_->broadcast(message, stage);
  if (stage_ != stage) {
    const core::TensorList theirs = unpack(form, message);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].copy_(theirs[i]);
    }
  }
}

core::State Stages::collect(core::State own) {
  const device::BeyondCaps beyond;  // whoever saves must have room for a moment
  std::string names;
  core::TensorList tensors;
  for (const auto& [name, tensor] : own.tensors) {
    names += name + '\n';
    tensors.push_back(tensor);
  }
  const ListForm form = form_of(tensors);
  at::Tensor numbers = to_numbers(form);
  const std::vector<at::Tensor> sizes = pipeline_->all_gather(two_numbers(numbers.numel(), std::ssize(names)));
  if (stage_ > 0 && names.empty()) {
    return {};
  }
  if (stage_ > 0) {
    at::Tensor text = bytes_of(names), values = pack(form, &tensors);
    pipeline_->send(numbers, 0);
    pipeline_->send(text, 0);
    pipeline_->send(values, 0);
    return {};
  }
  for (int stage = 1; stage < count(); ++stage) {
    const auto* const theirs = sizes[static_cast<std::size_t>(stage)].const_data_ptr<std::int64_t>();
    if (theirs[1] == 0) {
      continue;
    }
    numbers = at::empty({theirs[0]}, at::kLong);
    pipeline_->receive(numbers, stage);
    at::Tensor text = at::empty({theirs[1]}, at::kByte);
    pipeline_->receive(text, stage);
    const ListForm their_form = from_numbers(numbers);
    at::Tensor values = at::empty({pack_bytes(their_form)}, at::kByte);
    pipeline_->receive(values, stage);
    const core::TensorList list = unpack(their_form, values);
    const std::string lines = text_of(text);
    std::size_t begin = 0;
    for (const at::Tensor& each : list) {
      const std::size_t end = lines.find('\n', begin);
      own.tensors.emplace(lines.substr(begin, end - begin), each);  // entries of all stages are equal: the first stays
      begin = end + 1;
    }
  }
  return own;
}

}  // namespace stoker::parallel

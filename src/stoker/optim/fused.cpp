// SPDX-License-Identifier: Apache-2.0
#include "stoker/optim/fused.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/core/parallel.h"
#include "stoker/optim/memory_order.h"

namespace stoker::optim {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

// The gradient is read; value and moments are read and written.
std::int64_t FusedOptimizer::Slot::bytes_moved() const {
  const int passes = 3 + (first.defined() ? 2 : 0) + (second.defined() ? 2 : 0);
  return static_cast<std::int64_t>(value.nbytes()) * passes;
}

FusedOptimizer::FusedOptimizer(const OptimizerOptions& options, const std::vector<core::Parameter>& parameters)
    : options_(options) {
  for (const core::Parameter& parameter : parameters) {
    if (parameter.tensor.requires_grad()) {
      add(parameter);
    }
  }
  std::size_t largest = 0;
  for (const TensorGroup& group : groups_) {
    largest = std::max(largest, group.slots.size());
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t k = 0; k < groups_[i].slots.size(); ++k) {
      places_[groups_[i].slots[k].parameter.unsafeGetTensorImpl()] = {i, k};
    }
  }
  for (auto* list : {&lists_.values, &lists_.grads, &lists_.first, &lists_.second, &lists_.steps}) {
    list->reserve(largest);
  }
}

void FusedOptimizer::add(const core::Parameter& parameter) {
  const at::NoGradGuard no_grad;
  Slot slot{
      .name = parameter.name, .parameter = parameter.tensor, .value = parameter.tensor, .first = {}, .second = {}};
  if (at::isReducedFloatingType(parameter.tensor.scalar_type())) {
    slot.value = parameter.tensor.detach().to(at::kFloat);
    parameter.tensor.mutable_grad().reset();
    parameter.tensor.set_grad_dtype(at::kFloat);
  }
  const bool adam = options_.name != "sgd";
  if (adam || options_.momentum > 0) {
    slot.first = at::zeros_like(slot.value);
  }
  if (adam) {
    slot.second = at::zeros_like(slot.value);
  }
  const bool decays = parameter.role != core::Role::kNorm && parameter.role != core::Role::kBias;
  const double lr_factor = options_.lr_factor ? options_.lr_factor(parameter) : 1;
  TensorGroup& group = group_for(slot, decays ? options_.weight_decay : 0, lr_factor);
  if (slot.has_master()) {
    group.halves.push_back(slot.parameter);
    group.masters.push_back(slot.value);
  }
  group.slots.push_back(std::move(slot));
}

FusedOptimizer::TensorGroup& FusedOptimizer::group_for(const Slot& slot, double weight_decay, double lr_factor) {
  const at::Tensor& value = slot.value;
  const bool one_thread = value.is_cpu() && slot.bytes_moved() <= core::kOneThreadBytes;
  for (TensorGroup& group : groups_) {
    if (group.device == value.device() && group.dtype == value.scalar_type() && group.weight_decay == weight_decay &&
        group.lr_factor == lr_factor && group.one_thread == one_thread) {
      return group;
    }
  }
  auto counter = std::ranges::find(step_counters_, value.device(), [](const at::Tensor& t) { return t.device(); });
  if (counter == step_counters_.end()) {
    step_counters_.push_back(at::zeros({}, value.options().dtype(at::kFloat).requires_grad(false)));
    counter = step_counters_.end() - 1;
    ones_.push_back(at::ones_like(*counter));
  }
  const at::Tensor lr = at::zeros({}, counter->options().dtype(value.is_cpu() ? at::kDouble : at::kFloat));
  groups_.push_back({.device = value.device(),
                     .dtype = value.scalar_type(),
                     .weight_decay = weight_decay,
                     .lr_factor = lr_factor,
                     .one_thread = one_thread,
                     .lr = lr,
                     .steps = *counter,
                     .slots = {},
                     .halves = {},
                     .masters = {}});
  return groups_.back();
}

void FusedOptimizer::Lists::clear() {
  for (auto* list : {&values, &grads, &first, &second, &steps}) {
    list->clear();
  }
}

void FusedOptimizer::adopt_gradient(const Slot& slot) {
  at::Tensor& grad = slot.parameter.mutable_grad();
  if (grad.defined() && (grad.scalar_type() != slot.value.scalar_type() || !same_layout(grad, slot.value))) {
    grad = at::empty_like(slot.value).copy_(grad);
  }
}

void FusedOptimizer::adopt_gradients() {
  const at::NoGradGuard no_grad;
  for (const TensorGroup& group : groups_) {
    for (const Slot& slot : group.slots) {
      adopt_gradient(slot);
    }
  }
}

void FusedOptimizer::add_to_lists(const TensorGroup& group, const Slot& slot) {
  const at::Tensor& grad = slot.parameter.grad();
  if (!grad.defined()) {
    return;
  }
  lists_.values.push_back(as_it_lies(slot.value));
  lists_.grads.push_back(as_it_lies(grad));
  if (slot.first.defined()) {
    lists_.first.push_back(as_it_lies(slot.first));
  }
  if (slot.second.defined()) {
    lists_.second.push_back(as_it_lies(slot.second));
  }
  lists_.steps.push_back(group.steps);
}

void FusedOptimizer::launch_lists(const TensorGroup& group, const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  std::optional<core::OneThread> alone;  // LibTorch's kernels wake every thread even for a tensor of one number
  if (group.one_thread) {
    alone.emplace();
  }
  launch(group, found_inf, grad_scale);
}

void FusedOptimizer::launch(const TensorGroup& group, const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  if (core::on_host(group.lr)) {
    launch(group, core::host_value(group.lr), found_inf, grad_scale);
  } else {
    launch(group, group.lr, found_inf, grad_scale);
  }
}

// lr: a number, or a tensor that the kernel reads.
template <typename Lr>
void FusedOptimizer::launch(const TensorGroup& group, const Lr& lr, const at::Tensor& found_inf,
                            const at::Tensor& grad_scale) {
  const OptimizerOptions& o = options_;
  Lists& l = lists_;
  std::optional<at::Tensor> scale;
  if (grad_scale.defined() && group.dtype == at::kDouble) {  // the kernels only take float32
    at::_foreach_div_(l.grads, grad_scale.reshape({}));
  } else if (grad_scale.defined()) {
    scale = grad_scale.to(at::kFloat);
  }
  const auto inf = optional(found_inf);
  if (o.name == "adamw") {
    at::_fused_adamw_(l.values, l.grads, l.first, l.second, {}, l.steps, lr, o.beta1, o.beta2, group.weight_decay,
                      o.eps, /*amsgrad=*/false, /*maximize=*/false, scale, inf);
  } else if (o.name == "adam") {
    at::_fused_adam_(l.values, l.grads, l.first, l.second, {}, l.steps, lr, o.beta1, o.beta2, group.weight_decay, o.eps,
                     /*amsgrad=*/false, /*maximize=*/false, scale, inf);
  } else {
    // PyTorch's first step copies the gradient into the momentum; with zero momentum the usual formula does the same.
    at::_fused_sgd_(l.values, l.grads, l.first, group.weight_decay, o.momentum, lr, /*dampening=*/0, o.nesterov,
                    /*maximize=*/false, /*is_first_step=*/false, scale, inf);
  }
}

void FusedOptimizer::set_lr(double lr) {
  const at::NoGradGuard no_grad;
  for (const TensorGroup& group : groups_) {
    if (core::on_host(group.lr)) {
      core::set_host_value(group.lr, lr * group.lr_factor);
    } else {
      at::Tensor(group.lr).fill_(lr * group.lr_factor);
    }
  }
}

void FusedOptimizer::count_step() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < step_counters_.size(); ++i) {
    if (core::on_host(step_counters_[i])) {
      core::set_host_value(step_counters_[i], core::host_value(step_counters_[i]) + 1);
    } else {
      step_counters_[i].add_(ones_[i]);
    }
  }
}

void FusedOptimizer::update(const at::Tensor& parameter) {
  const at::NoGradGuard no_grad;
  const auto [index, place] = places_.at(parameter.unsafeGetTensorImpl());
  const TensorGroup& group = groups_[index];
  const Slot& slot = group.slots[place];
  adopt_gradient(slot);
  lists_.clear();
  add_to_lists(group, slot);
  if (!lists_.values.empty()) {
    launch_lists(group, {}, {});
    if (slot.has_master()) {
      at::Tensor(slot.parameter).copy_(slot.value);
    }
  }
  lists_.clear();
}

void FusedOptimizer::step(const at::Tensor& found_inf, const at::Tensor& grad_scale) {
  const at::NoGradGuard no_grad;
  adopt_gradients();  // the last allocation
  count_step();
  for (const TensorGroup& group : groups_) {
    lists_.clear();
    for (const Slot& slot : group.slots) {
      add_to_lists(group, slot);
    }
    if (lists_.values.empty()) {
      continue;
    }
    launch_lists(group, found_inf, grad_scale);
    if (!group.halves.empty()) {
      at::_foreach_copy_(group.halves, group.masters);
    }
  }
  lists_.clear();
  if (found_inf.defined()) {
    for (at::Tensor& counter : step_counters_) {  // a skipped step does not count
      if (core::on_host(counter) && core::on_host(found_inf)) {
        core::set_host_value(counter, core::host_value(counter) - core::host_value(found_inf));
      } else {
        counter.sub_(found_inf.reshape({}));  // only known on the device
      }
    }
  }
}

template <typename Visit>
void FusedOptimizer::each_tensor(Visit visit) const {
  const bool adam = options_.name != "sgd";
  for (const TensorGroup& group : groups_) {
    for (const Slot& slot : group.slots) {
      if (slot.first.defined()) {
        visit((adam ? "optimizer.exp_avg." : "optimizer.momentum.") + slot.name, slot.first);
      }
      if (slot.second.defined()) {
        visit("optimizer.exp_avg_sq." + slot.name, slot.second);
      }
      if (slot.has_master()) {
        visit("optimizer.master." + slot.name, slot.value);
      }
    }
  }
  for (const at::Tensor& counter : step_counters_) {
    visit(std::string("optimizer.step"), counter);
  }
}

std::int64_t FusedOptimizer::state_bytes() const {
  std::int64_t bytes = 0;
  each_tensor(
      [&](const std::string&, const at::Tensor& tensor) { bytes += static_cast<std::int64_t>(tensor.nbytes()); });
  return bytes;
}

void FusedOptimizer::save_state(core::State& state) const {
  each_tensor([&](const std::string& name, const at::Tensor& tensor) { state.tensors[name] = tensor; });
}

void FusedOptimizer::load_state(const core::State& state) {
  each_tensor([&](const std::string& name, const at::Tensor& tensor) { core::restore_tensor(tensor, state, name); });
}

}  // namespace stoker::optim

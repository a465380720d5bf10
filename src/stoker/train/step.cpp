// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/step.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <mutex>
#include <tuple>

#include "stoker/base/error.h"
#include "stoker/base/philox.h"
#include "stoker/core/host_value.h"
#include "stoker/optim/clip.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"
#include "stoker/train/step_report.h"

namespace stoker::train {
namespace {

// The generator that the model draws from, as a function of where we are: nothing to save, nothing to put back.
void seed_generator(c10::Device device, std::uint64_t seed, std::int64_t step, std::int64_t part) {
  const auto low = static_cast<std::uint32_t>(step);
  const auto high = static_cast<std::uint32_t>(step >> 32);
  const PhiloxBlock mixed = philox4x32({low, high, static_cast<std::uint32_t>(part), 0x5EED},
                                       {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed((std::uint64_t{mixed[0]} << 32) | mixed[1]);
}

c10::Device device_of(const std::vector<core::Parameter>& parameters) {
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().tensor.device();
}

}  // namespace

Step::Step(StepParts parts, StepOptions options) : parts_(parts), options_(options), device_(c10::kCPU) {
  bool trains = false;
  for (const core::Parameter& parameter : parts_.model.parameters()) {
    trains = trains || parameter.tensor.requires_grad();
    device_ = parameter.tensor.device();
  }
  if (!trains) {
    fail<ConfigError>("train.step", "no parameter requires a gradient: every segment is frozen; set freeze lower");
  }
  norm_ = parts_.model.norm_buffers();
  for (const at::Tensor& buffer : norm_) {
    saved_norm_.push_back(at::empty_like(buffer));
  }
  names_ = {"loss"};
  const std::vector<std::string> terms = parts_.model.loss_names();
  if (terms.size() > 1) {
    names_.insert(names_.end(), terms.begin(), terms.end());
  }
  if (options_.clip > 0) {
    names_.emplace_back("grad_norm");
  }
  names_.emplace_back("skipped");
  if (options_.autocast == at::kHalf) {
    names_.emplace_back("scale");
  }
  if (names_.size() > core::kMaxScalars) {
    fail<ConfigError>("train.step", "{} values a step are more than the {} that are reported", names_.size(),
                      core::kMaxScalars);
  }
  skipped_ = at::zeros({1}, at::TensorOptions(at::kFloat).device(device_));
  scalars_ = at::zeros({static_cast<std::int64_t>(names_.size())}, at::TensorOptions(at::kFloat).device(device_));
}

Step::Step(core::Trainable& model, const optim::OptimizerOptions& optimizer, StepOptions options)
    : Step(model,
           std::make_unique<OwnParts>(
               core::SingleRank(), optim::make_optimizer(optimizer, model.parameters()),
               precision::GradScaler({.scaling = options.autocast == at::kHalf}, device_of(model.parameters()))),
           options) {}

Step::Step(core::Trainable& model, std::unique_ptr<OwnParts> own, const StepOptions& options)
    : Step({model, *own->optimizer, own->scaler, own->ranks}, options) {
  own_ = std::move(own);
}

void Step::compute(const core::Batch& batch, std::int64_t number) {
  RECORD_USER_SCOPE("step.compute");  // a name for profilers; nothing without one
  const std::int64_t size = batch.size();
  const std::int64_t largest = std::max<std::int64_t>(1, options_.microbatch > 0 ? options_.microbatch : size);
  const std::int64_t parts = std::max<std::int64_t>(1, (size + largest - 1) / largest);
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < norm_.size(); ++i) {
      saved_norm_[i].copy_(norm_[i]);
    }
  }
  drop_gradients();  // another Trainable that shares modules may have left some
  loss_parts_ = at::Tensor();
  try {
    core::Normalisers normalisers = parts_.model.normalisers(batch);
    parts_.ranks.all_reduce_sum(normalisers);
    for (std::int64_t part = 0; part < parts; ++part) {  // balanced: sizes differ by one at most
      seed_generator(device_, options_.seed, number, part);
      if (parts == 1) {
        forward_backward(batch, normalisers);
      } else {
        forward_backward(batch.slice(part * size / parts, (part + 1) * size / parts), normalisers);
      }
    }
  } catch (...) {
    drop();
    throw;
  }
}

void Step::forward_backward(const core::Batch& part, const core::Normalisers& normalisers) {
  const precision::SearchGuard search(part.size(), largest_pass_);
  core::LossTerms terms;
  {
    const bool mixed = options_.autocast != at::kFloat;
    const precision::AutocastGuard autocast(device_.type(), mixed ? options_.autocast : at::kBFloat16, mixed);
    terms = parts_.model.loss(parts_.model.forward(parts_.model.inputs(part)), part);
  }
  const core::NormalisedLoss loss =
      core::normalise(terms, normalisers, parts_.scaler.scaling() ? parts_.scaler.current_scale() : at::Tensor());
  torch::autograd::backward(loss.sums, loss.gradients);
  const at::NoGradGuard no_grad;
  loss_parts_ = loss_parts_.defined() ? loss_parts_ + loss.parts : loss.parts;
}

void Step::commit(double lr) {
  RECORD_USER_SCOPE("step.commit");
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> grads = optim::gradients(parts_.model.parameters());
  at::Tensor& found_inf = parts_.scaler.found_inf();
  at::Tensor grad_norm, grad_scale;
  if (options_.clip > 0) {
    std::tie(grad_norm, grad_scale) = norm_and_scale(grads);
  } else {
    parts_.scaler.check(grads);
    grad_scale = parts_.scaler.scaling() ? parts_.scaler.current_scale() : at::Tensor();
  }
  judge_and_report(
      {loss_parts_, grad_norm, options_.autocast == at::kHalf ? parts_.scaler.current_scale() : at::Tensor()},
      found_inf, skipped_, scalars_);
  keep_norm_buffers_if_skipped();  // before the averages take them up
  parts_.optimizer.step(lr, found_inf, grad_scale);
  if (parts_.ema != nullptr) {
    parts_.ema->update(found_inf);
  }
  parts_.scaler.update();
  parts_.scaler.clear();
  drop_gradients();
}

// One pass over the gradients, which only reads: their norm tells whether they are finite, and the optimizer divides.
std::pair<at::Tensor, at::Tensor> Step::norm_and_scale(const std::vector<at::Tensor>& grads) {
  at::Tensor norm = optim::gradient_norm(grads);
  optim::mark_non_finite(norm, parts_.scaler.found_inf());
  if (!parts_.scaler.scaling()) {
    return {norm, optim::clip_divisor(norm, options_.clip)};
  }
  const at::Tensor& scale = parts_.scaler.current_scale();
  norm = norm / scale;
  const at::Tensor divisor = optim::clip_divisor(norm, options_.clip);
  return {norm, divisor.defined() ? divisor * scale : scale};
}

void Step::drop_gradients() {
  for (const core::Parameter& parameter : parts_.model.parameters()) {
    parameter.tensor.mutable_grad() = at::Tensor();
  }
}

void Step::drop() {
  const at::NoGradGuard no_grad;
  drop_gradients();
  for (std::size_t i = 0; i < norm_.size(); ++i) {
    norm_[i].copy_(saved_norm_[i]);
  }
}

void Step::keep_norm_buffers_if_skipped() {
  const at::Tensor& found_inf = parts_.scaler.found_inf();
  if (norm_.empty() || (core::on_host(found_inf) && core::host_value(found_inf) == 0)) {
    return;
  }
  const at::Tensor skipped = found_inf > 0;
  for (std::size_t i = 0; i < norm_.size(); ++i) {
    at::where_out(norm_[i], skipped, saved_norm_[i], norm_[i]);
  }
}

void Step::save_state(core::State& state) const {
  state.tensors["step.skipped"] = skipped_;
  if (own_) {
    own_->optimizer->save_state(state);
    own_->scaler.save_state(state);
  }
}

void Step::load_state(const core::State& state) {
  core::restore_tensor(skipped_, state, "step.skipped");
  if (own_) {
    own_->optimizer->load_state(state);
    own_->scaler.load_state(state);
  }
}

}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/backward_updates.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "stoker/base/plain_nan.h"
#include "stoker/core/host_value.h"
#include "stoker/core/phase.h"
#include "stoker/core/step_work.h"
#include "stoker/memory/out_of_memory.h"

namespace stoker::train {
namespace {

constexpr std::string_view kWhere = "train.step";
constexpr std::string_view kRemedy = "which cannot skip a step; lower lr, set precision=fp32, or check the samples";

}  // namespace

void check_in_backward(double clip, bool scaling, int ranks, c10::Device device) {
  const char* other = clip > 0           ? "clip"
                      : scaling          ? "a gradient scaler"
                      : ranks > 1        ? "several ranks"
                      : !device.is_cpu() ? "a device other than the CPU"
                                         : nullptr;
  if (other != nullptr) {
    fail<ConfigError>(kWhere, "{} does not work with {}; leave one of them out", kOptimizerInBackward, other);
  }
}

// Called by autograd after the sum of all contributions to a gradient has been stored: once per backward pass, for
// tied parameters, too.
class BackwardUpdates::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(BackwardUpdates& updates, std::size_t slot) : updates_(updates), slot_(slot) {}
  void operator()(const at::Tensor&) override {
    if (updates_.active_) {
      updates_.update(slot_);
    }
  }

 private:
  BackwardUpdates& updates_;
  std::size_t slot_;
};

BackwardUpdates::BackwardUpdates(const std::vector<core::Parameter>& parameters, optim::Optimizer& optimizer,
                                 precision::GradScaler& scaler)
    : optimizer_(optimizer), scaler_(scaler) {
  slots_.reserve(parameters.size());  // a hook without a slot would never be taken off
  for (const core::Parameter& parameter : parameters) {
    if (!parameter.tensor.requires_grad()) {
      continue;
    }
    if (torch::autograd::impl::post_acc_grad_hooks(parameter.tensor) != nullptr) {
      unhook();
      fail<ConfigError>(kWhere, "\"{}\" already has a hook after its gradient; remove it, or set {}=off",
                        parameter.name, kOptimizerInBackward);
    }
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, std::make_unique<Hook>(*this, slots_.size()));
    slots_.push_back({parameter});
  }
}

BackwardUpdates::~BackwardUpdates() { unhook(); }

void BackwardUpdates::unhook() {
  for (const Slot& slot : slots_) {
    torch::autograd::impl::post_acc_grad_hooks(slot.parameter.tensor).reset();
  }
}

void BackwardUpdates::set_lr(double lr) {
  lr_ = lr;
  optimizer_.set_lr(lr);
}

void BackwardUpdates::check_ready(std::int64_t passes) const {
  if (passes > 1) {
    fail<ConfigError>(kWhere, "{}=on updates parameters after one backward pass, but the batch is split into {}",
                      kOptimizerInBackward, passes);
  }
  if (begun()) {
    fail<ConfigError>(kWhere, "{} have taken a step that failed, the others have not; load a checkpoint", extent());
  }
  if (lr_ < 0) {
    fail<ConfigError>(kWhere, "the optimizer works inside backward, so set_lr() comes before each compute()");
  }
}

void BackwardUpdates::check_loss(const at::Tensor& parts) {
  double loss = 0;
  for (std::int64_t i = 0; i < parts.numel(); ++i) {
    loss += parts.const_data_ptr<double>()[i];
  }
  if (!core::is_finite(static_cast<float>(loss))) {
    fail<NotFinite>(kWhere, "the loss is {} in {}=on, {}", plain_nan(loss), kOptimizerInBackward, kRemedy);
  }
}

void BackwardUpdates::during(const std::function<void()>& backward) {
  struct Active {
    bool& flag;
    ~Active() { flag = false; }
  };
  const Active active{active_};
  active_ = true;
  for (Slot& slot : slots_) {
    slot.done = false;
  }
  backward();
}

void BackwardUpdates::update(std::size_t slot) {
  auto& [parameter, done] = slots_[slot];
  at::Tensor& gradient = parameter.tensor.mutable_grad();
  if (std::exchange(done, true)) {
    fail<ConfigError>(kWhere, "the gradient of \"{}\" came twice in one backward pass; set {}=off", parameter.name,
                      kOptimizerInBackward);
  }
  const core::PhaseScope phase(core::Phase::kUpdate);
  const at::NoGradGuard no_grad;
  scaler_.check({gradient});
  if (core::host_value(scaler_.found_inf()) != 0) {
    fail<NotFinite>(kWhere, "the gradient of \"{}\" is not finite after {} have taken the step in {}=on, {}",
                    parameter.name, extent(), kOptimizerInBackward, kRemedy);
  }
  if (updated_++ == 0) {
    optimizer_.count_step();
  }
  optimizer_.update(parameter.tensor);
  gradient.reset();
}

void BackwardUpdates::finish(double lr) {
  if (lr != lr_) {
    fail<ConfigError>(kWhere, "the step was computed with a learning rate of {}, not {}", lr_, lr);
  }
  if (!begun()) {  // no parameter was used: a step after backward counts, too
    optimizer_.count_step();
  }
  updated_ = 0;
  lr_ = -1;
}

void BackwardUpdates::explain_failure() const {
  try {
    throw;
  } catch (const std::exception& error) {
    if (memory::is_out_of_memory(error)) {
      explain(error);
    }
  } catch (...) {  // not ours to explain
  }
}

void BackwardUpdates::explain(const std::exception& error) const {
  fail<OutOfMemory>(kWhere,
                    "the step ran out of memory after {} had been updated, and {}=on cannot run it again in smaller "
                    "passes ({}); resume from the last checkpoint if there is one, or start a new run with a smaller "
                    "batch=, recompute=all or "
                    "{}=off",
                    extent(), kOptimizerInBackward, memory::out_of_memory_reason(error), kOptimizerInBackward);
}

std::string BackwardUpdates::extent() const { return fmt::format("{} of {} parameters", updated_, slots_.size()); }

}  // namespace stoker::train

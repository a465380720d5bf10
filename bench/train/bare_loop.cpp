// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/CPUAllocator.h>

#include "step_loops.h"
#include "stoker/base/error.h"
#include "stoker/precision/autocast.h"

namespace stoker::bench {
namespace {

// While it lives, CPU tensors come from torch's own allocator, which keeps no figures.
class TorchsAllocator {
 public:
  TorchsAllocator() { c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), kPriority); }
  ~TorchsAllocator() { c10::SetCPUAllocator(before_, kPriority); }
  TorchsAllocator(const TorchsAllocator&) = delete;
  TorchsAllocator& operator=(const TorchsAllocator&) = delete;

 private:
  static constexpr std::uint8_t kPriority = 255;  // a lower one than that of Stoker's would be ignored
  c10::Allocator* before_ = c10::GetCPUAllocator();
};

class BareLoop final : public Loop {
 public:
  explicit BareLoop(StepCase& made) : case_(made), autocast_(precision::autocast_dtype(made.options.precision)) {
    if (autocast_ == at::kHalf) {
      fail<ConfigError>("bench.step", "the bare loop does not scale gradients; precision is fp32 or bf16");
    }
    for (const core::Parameter& parameter : made.model->parameters()) {
      parameters_.push_back(parameter.tensor);
      if (made.optimizer.momentum > 0 || made.optimizer.name == "adamw") {
        first_.push_back(at::zeros_like(parameter.tensor.detach()));
      }
      if (made.optimizer.name == "adamw") {
        second_.push_back(at::zeros_like(parameter.tensor.detach()));
        counts_.push_back(at::zeros({}, at::device(made.options.device).dtype(at::kFloat)));
      }
    }
    grads_.resize(parameters_.size());
  }

  void run(std::int64_t steps, const std::function<bool()>& before) override {
    const TorchsAllocator allocator;
    for (std::int64_t i = 0; i < steps && (!before || before()); ++i) {
      step();
    }
  }

 private:
  at::Tensor outputs() const {
    const core::Batch& batch = case_.batch;
    if (case_.options.model == "mlp") {
      const auto& p = parameters_;
      return at::linear(at::linear(at::linear(batch["x"], p[0], p[1]).relu_(), p[2], p[3]).relu_(), p[4], p[5]);
    }
    return case_.model->network().forward(case_.model->inputs(batch).front());
  }

  at::Tensor loss() const {
    const bool mixed = autocast_ != at::kFloat;
    const precision::AutocastGuard autocast(case_.options.device.type(), mixed ? autocast_ : at::kBFloat16, mixed);
    at::Tensor logits = outputs();
    at::Tensor target = case_.batch["target"];
    if (logits.dim() == 3) {
      logits = logits.flatten(0, 1);
      target = target.flatten();
    }
    constexpr std::int64_t kNoIgnoredClass = -100;
    return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, kNoIgnoredClass, case_.label_smoothing);
  }

  void step() {
    for (at::Tensor& parameter : parameters_) {
      parameter.mutable_grad() = at::Tensor();
    }
    loss().backward();
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      grads_[i] = parameters_[i].grad();
    }
    const optim::OptimizerOptions& o = case_.optimizer;
    if (o.name == "adamw") {
      for (at::Tensor& count : counts_) {
        count.add_(1);
      }
      at::_fused_adamw_(parameters_, grads_, first_, second_, {}, counts_, case_.lr, o.beta1, o.beta2, o.weight_decay,
                        o.eps, /*amsgrad=*/false, /*maximize=*/false);
    } else {
      at::_fused_sgd_(parameters_, grads_, first_, o.weight_decay, o.momentum, case_.lr, /*dampening=*/0, o.nesterov,
                      /*maximize=*/false, std::exchange(first_step_, false));
    }
    std::ranges::fill(grads_, at::Tensor());
  }

  StepCase& case_;
  at::ScalarType autocast_;
  std::vector<at::Tensor> parameters_, grads_, first_, second_, counts_;
  bool first_step_ = true;
};

}  // namespace

std::unique_ptr<Loop> make_bare_loop(StepCase& made) { return std::make_unique<BareLoop>(made); }

}  // namespace stoker::bench

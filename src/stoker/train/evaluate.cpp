// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/phase.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"

namespace stoker::train {
namespace {

// The inputs of the model, in the dtypes that they have without autocast.
core::TensorList plain_inputs(core::Trainable& model, const core::Batch& batch, c10::Device device) {
  const precision::AutocastGuard plain(device.type(), at::kBFloat16, /*enabled=*/false);
  return model.inputs(batch);
}

// A parameter that the model hands to its loss requires a gradient, too, but keeps no activations.
bool have_gradients(const core::TensorList& outputs, const std::vector<core::NamedTensor>& totals) {
  const auto needs = [](const at::Tensor& each) { return each.defined() && each.requires_grad() && !each.is_leaf(); };
  return std::ranges::any_of(outputs, needs) || std::ranges::any_of(totals, needs, &core::NamedTensor::tensor);
}

// A pass over a batch, or over a part of it.
class Evaluation {
 public:
  Evaluation(core::Trainable& model, const EvaluationHooks& hooks, c10::Device device)
      : model_(model), hooks_(hooks), device_(device) {}

  // Split anew after each failure; what was added before stays.
  void add(const core::Batch& batch, memory::BatchSplit& split) {
    const std::int64_t size = batch.size();
    for (std::int64_t done = 0; done < size || (size == 0 && done == 0);) {
      memory::until_it_fits(split, size - done, [&] {
        const std::int64_t passes = split.passes(size - done);
        const std::int64_t last = done + (size - done + passes - 1) / passes;
        if (done == 0 && last == size) {
          add(batch);
        } else {
          add(batch.slice(done, last));
        }
        done = last;
      });
      if (size == 0) {
        return;
      }
    }
  }
  [[nodiscard]] std::vector<core::NamedTensor>& totals() { return totals_; }

 private:
  // Changes the totals at its end, without allocating memory then.
  void add(const core::Batch& batch) {
    const precision::SearchGuard search(batch.size(), largest_pass_);
    const core::TensorList outputs = model_.forward(plain_inputs(model_, batch, device_));
    auto part = model_.evaluate(outputs, batch);
    if (hooks_.visit) {
      hooks_.visit(outputs, batch);
    }
    if (hooks_.with_gradients && have_gradients(outputs, part)) {
      hooks_.with_gradients();
    }
    if (totals_.empty()) {
      totals_ = std::move(part);
      return;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      totals_[i].tensor.add_(part[i].tensor);
    }
  }

  core::Trainable& model_;
  const EvaluationHooks& hooks_;
  c10::Device device_;
  std::vector<core::NamedTensor> totals_;
  std::int64_t largest_pass_ = 0;
};

}  // namespace

std::vector<core::NamedTensor> evaluate(core::Trainable& model, core::BatchSource& source, at::ScalarType dtype,
                                        const EvaluationHooks& hooks) {
  // Autocast caches its half-precision copies of the weights until the outermost guard ends, so one guard covers all
  // batches. It caches none in inference mode, and none for weights that require no gradient.
  const core::PhaseScope phase(core::Phase::kEvaluation);
  const at::NoGradGuard no_grad;
  const c10::Device device = model.parameters().front().tensor.device();
  const bool mixed = dtype != at::kFloat;
  const precision::AutocastGuard autocast(device.type(), mixed ? dtype : at::kBFloat16, mixed);
  memory::FixedSplit whole;
  memory::BatchSplit& split = hooks.split != nullptr ? *hooks.split : whole;
  Evaluation evaluation(model, hooks, device);
  while (true) {
    std::optional<core::Batch> batch;
    {
      const precision::AutocastGuard plain(device.type(), at::kBFloat16, /*enabled=*/false);
      batch = split.next(source);
    }
    if (!batch) {
      break;
    }
    evaluation.add(*batch, split);
    if (hooks.go_on && !hooks.go_on(*batch)) {
      return {};
    }
  }
  std::vector<core::NamedTensor> totals = std::move(evaluation.totals());
  if (totals.empty()) {
    fail<DataError>("train.evaluate", "there are no samples to evaluate");
  }
  for (core::NamedTensor& total : totals) {
    total.tensor = total.tensor.cpu();
  }
  return totals;
}

std::vector<core::NamedTensor> sum_over_ranks(std::vector<core::NamedTensor> totals, core::Communicator& ranks) {
  std::array gave_up{totals.empty()};
  core::any_rank(ranks, gave_up);
  if (gave_up[0]) {
    return {};
  }
  for (core::NamedTensor& total : totals) {
    ranks.all_reduce_sum(total.tensor);
  }
  return totals;
}

}  // namespace stoker::train

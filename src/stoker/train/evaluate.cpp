// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <array>

#include "stoker/base/error.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"

namespace stoker::train {
namespace {

struct Prepared {
  core::Batch batch;
  core::TensorList inputs;
};

// The next batch and the model's inputs, in the dtypes that they have without autocast.
std::optional<Prepared> next(core::Trainable& model, core::BatchSource& source, c10::Device device) {
  const precision::AutocastGuard plain(device.type(), at::kBFloat16, /*enabled=*/false);
  std::optional<core::Batch> batch = source.next();
  if (!batch) {
    return std::nullopt;
  }
  core::TensorList inputs = model.inputs(*batch);
  return Prepared{std::move(*batch), std::move(inputs)};
}

}  // namespace

std::vector<core::NamedTensor> evaluate(
    core::Trainable& model, core::BatchSource& source, at::ScalarType dtype,
    const std::function<void(const core::TensorList& outputs, const core::Batch&)>& visit,
    const std::function<bool(const core::Batch&)>& go_on) {
  // Autocast caches its half-precision copies of the weights until the outermost guard ends, so one guard covers all
  // batches. It caches none in inference mode, and none for weights that require no gradient.
  const at::NoGradGuard no_grad;
  const c10::Device device = model.parameters().front().tensor.device();
  const bool mixed = dtype != at::kFloat;
  const precision::AutocastGuard autocast(device.type(), mixed ? dtype : at::kBFloat16, mixed);
  std::vector<core::NamedTensor> totals;
  std::int64_t largest_pass = 0;
  while (std::optional<Prepared> given = next(model, source, device)) {
    const precision::SearchGuard search(given->batch.size(), largest_pass);
    const core::TensorList outputs = model.forward(std::move(given->inputs));
    const auto part = model.evaluate(outputs, given->batch);
    if (visit) {
      visit(outputs, given->batch);
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (totals.size() < part.size()) {
        totals.push_back(part[i]);
      } else {
        totals[i].tensor.add_(part[i].tensor);
      }
    }
    if (go_on && !go_on(given->batch)) {
      return {};
    }
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/evaluate.h"

#include <c10/core/InferenceMode.h>

#include "stoker/base/error.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/policy.h"

namespace stoker::train {

std::vector<core::NamedTensor> evaluate(
    core::Trainable& model, core::BatchSource& source, at::ScalarType dtype,
    const std::function<void(const core::TensorList& outputs, const core::Batch&)>& visit,
    const std::function<bool(const core::Batch&)>& go_on) {
  const c10::InferenceMode inference;
  std::vector<core::NamedTensor> totals;
  std::int64_t largest_pass = 0;
  while (const std::optional<core::Batch> batch = source.next()) {
    const precision::SearchGuard search(batch->size(), largest_pass);
    core::TensorList inputs = model.inputs(*batch);
    const bool mixed = dtype != at::kFloat;
    const precision::AutocastGuard autocast(inputs.front().device().type(), mixed ? dtype : at::kBFloat16, mixed);
    const core::TensorList outputs = model.forward(std::move(inputs));
    const auto part = model.evaluate(outputs, *batch);
    if (visit) {
      visit(outputs, *batch);
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (totals.size() < part.size()) {
        totals.push_back(part[i]);
      } else {
        totals[i].tensor.add_(part[i].tensor);
      }
    }
    if (go_on && !go_on(*batch)) {
      return {};
    }
  }
  if (totals.empty()) {
    fail<DataError>("train.evaluate", "there is nothing to evaluate on");
  }
  for (core::NamedTensor& total : totals) {
    total.tensor = total.tensor.cpu();
  }
  return totals;
}

}  // namespace stoker::train

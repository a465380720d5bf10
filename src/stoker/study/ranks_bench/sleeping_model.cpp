// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/ranks_bench/sleeping_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <thread>

#include "stoker/base/fmt.h"

namespace stoker::study {

SleepingModel::SleepingModel(const SleepingOptions& options) : options_(options) {
  for (int segment = 0; segment < options_.segments; ++segment) {
    core::Parameter& each = parameters_.emplace_back();
    each.name = fmt::format("layer{}.weight", segment);
    each.tensor = at::zeros({options_.values}, at::device(options_.device).dtype(at::kFloat)).requires_grad_();
    each.segments = {segment};
  }
}

core::Batch SleepingModel::batch(c10::Device device) {
  core::Batch batch({}, std::vector<std::int64_t>{0});
  batch.set("x", at::zeros({1}, at::device(device).dtype(at::kFloat)));
  return batch;
}

core::TensorList SleepingModel::inputs(const core::Batch& batch) const { return {batch["x"]}; }

// The hook on the output runs before the gradient of the segment's parameter is computed.
core::TensorList SleepingModel::forward_segment(int segment, core::TensorList inputs) {
  std::this_thread::sleep_for(options_.forward);
  const at::Tensor& parameter = parameters_[static_cast<std::size_t>(segment)].tensor;
  at::Tensor output = inputs.front() + parameter.sum();
  output.register_hook([pause = options_.backward](const at::Tensor& gradient) {
    std::this_thread::sleep_for(pause);
    return gradient;
  });
  return {output};
}

core::LossTerms SleepingModel::loss(const core::TensorList& outputs, const core::Batch&) const {
  return {{"loss", 1, outputs.front().sum()}};
}

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
#include "stoker/core/trainable.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include "stoker/base/error.h"

namespace stoker::core {

TensorList Trainable::forward(TensorList inputs, const std::function<void(int segment)>& before) {
  for (int segment = 0; segment < segments(); ++segment) {
    if (before && draws(segment)) {
      before(segment);
    }
    inputs = forward_segment(segment, std::move(inputs));
  }
  return inputs;
}

TensorList Trainable::forward_inner(int segment, int inner, TensorList) {
  fail<ConfigError>("core.trainable", "{} has no part {}; a class with inner_segments() overrides forward_inner()",
                    segment_name(segment), inner);
}

const std::vector<NamedTensor>& Trainable::buffers() const {
  static const std::vector<NamedTensor> none;
  return none;
}

Normalisers Trainable::normalisers(const Batch& batch) const {
  const auto terms = static_cast<std::int64_t>(loss_names().size());
  return at::full({terms}, batch.size(), at::TensorOptions(at::kDouble).device(batch.fields().at(0).values.device()));
}

std::vector<NamedTensor> Trainable::evaluate(const TensorList& outputs, const Batch& batch) const {
  std::vector<at::Tensor> sums;
  for (const LossTerm& term : loss(outputs, batch)) {
    sums.push_back(term.sum.to(at::kDouble) * term.weight);
  }
  return {{"sums", at::stack(sums)}, {"normalisers", normalisers(batch)}};
}

std::vector<MetricValue> Trainable::metrics(const std::vector<NamedTensor>& totals) const {
  const at::Tensor &sums = totals[0].tensor, &normalisers = totals[1].tensor;
  // A term without counted elements contributes 0, as in training.
  return {{"loss", (sums / normalisers).masked_fill(normalisers == 0, 0).sum().item<double>(), false}};
}

std::int64_t parameter_count(const std::vector<Parameter>& parameters) {
  std::int64_t count = 0;
  for (const Parameter& each : parameters) {
    count += each.tensor.numel();
  }
  return count;
}

}  // namespace stoker::core

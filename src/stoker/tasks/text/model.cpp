// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stoker/ops/cross_entropy.h"
#include "stoker/ops/linear_cross_entropy.h"

namespace stoker::tasks {

TextModel::TextModel(std::unique_ptr<models::Network> network, TextModelOptions options)
    : NetworkTrainable(std::move(network)), options_(std::move(options)) {}

void TextModel::to(c10::Device device) {
  NetworkTrainable::to(device);
  if (options_.token_bytes.defined()) {
    options_.token_bytes = options_.token_bytes.to(device);
  }
}

core::TensorList TextModel::inputs(const core::Batch& batch) const { return {batch["ids"]}; }

core::Normalisers TextModel::normalisers(const core::Batch& batch) const {
  return batch["target"].ge(0).sum().to(at::kDouble).reshape({1});
}

at::Tensor TextModel::loss_sum(const core::TensorList& outputs, const at::Tensor& target) const {
  const at::Tensor rows = outputs.front().flatten(0, 1);
  return options_.loss_chunk == 0
             ? ops::cross_entropy_sum(rows, target.flatten())
             : ops::linear_cross_entropy_sum(rows, outputs.at(1), target.flatten(), options_.loss_chunk);
}

core::LossTerms TextModel::loss(const core::TensorList& outputs, const core::Batch& batch) const {
  return {{"cross_entropy", 1, loss_sum(outputs, batch["target"])}};
}

std::vector<core::NamedTensor> TextModel::evaluate(const core::TensorList& outputs, const core::Batch& batch) const {
  const at::Tensor &target = batch["target"], counted = target.ge(0);
  std::vector<core::NamedTensor> totals = {{"nats", loss_sum(outputs, target).to(at::kDouble).reshape({1})},
                                           {"tokens", counted.sum().reshape({1})}};
  if (options_.token_bytes.defined()) {
    const at::Tensor lengths = options_.token_bytes.index_select(0, target.clamp_min(0).flatten());
    totals.push_back({"bytes", (lengths * counted.flatten()).sum().reshape({1})});
  }
  return totals;
}

std::vector<core::MetricValue> TextModel::metrics(const std::vector<core::NamedTensor>& totals) const {
  const double nats = totals.at(0).tensor.item<double>();
  const double loss = nats / static_cast<double>(totals.at(1).tensor.item<std::int64_t>());
  std::vector<core::MetricValue> values = {{"loss", loss, false}, {"perplexity", std::exp(loss), false}};
  if (totals.size() > 2) {
    values.push_back({"bits_per_byte", nats / std::numbers::ln2 / totals[2].tensor.item<double>(), false});
  }
  return values;
}

at::Tensor TextModel::next_logits(const at::Tensor& ids) {
  const core::TensorList outputs = forward({ids});
  const at::Tensor last = outputs.front().select(1, -1);
  return (options_.loss_chunk == 0 ? last : at::linear(last.to(outputs.at(1).scalar_type()), outputs.at(1)))
      .squeeze(0)
      .to(at::kFloat)
      .cpu();
}

}  // namespace stoker::tasks

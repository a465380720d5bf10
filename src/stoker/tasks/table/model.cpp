// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stoker/ops/cross_entropy.h"
#include "stoker/tasks/metrics/binary_auc.h"
#include "stoker/tasks/metrics/classification.h"

namespace stoker::tasks {
namespace {

std::int64_t most_bins(const TableEncoding& encoding) {
  std::size_t most = 0;
  for (const NumberColumn& each : encoding.numbers) {
    most = std::max(most, each.edges.empty() ? 0 : each.edges.size() - 1);
  }
  return static_cast<std::int64_t>(most);
}

const at::Tensor& total(const std::vector<core::NamedTensor>& totals, std::string_view name) {
  return std::ranges::find(totals, name, &core::NamedTensor::name)->tensor;
}

}  // namespace

std::int64_t number_width(const TableEncoding& encoding) {
  const auto columns = static_cast<std::int64_t>(encoding.numbers.size());
  return columns + std::ranges::count(encoding.numbers, true, &NumberColumn::has_missing) +
         columns * most_bins(encoding);
}

TableModel::TableModel(std::unique_ptr<models::Network> network, TableModelOptions options)
    : NetworkTrainable(std::move(network)), options_(std::move(options)) {
  const auto columns = static_cast<std::int64_t>(options_.encoding.numbers.size());
  const std::int64_t bins = most_bins(options_.encoding);
  low_ = at::zeros({1, columns, bins}, at::kFloat);
  width_ = at::full({1, columns, bins}, std::numeric_limits<float>::infinity(), at::kFloat);
  auto low = low_.accessor<float, 3>(), width = width_.accessor<float, 3>();
  for (std::int64_t column = 0; column < columns; ++column) {
    const std::vector<double>& edges = options_.encoding.numbers[static_cast<std::size_t>(column)].edges;
    for (std::size_t bin = 0; bin + 1 < edges.size(); ++bin) {
      low[0][column][static_cast<std::int64_t>(bin)] = static_cast<float>(edges[bin]);
      width[0][column][static_cast<std::int64_t>(bin)] =
          std::max(static_cast<float>(edges[bin + 1] - edges[bin]), std::numeric_limits<float>::min());
    }
  }
}

void TableModel::to(c10::Device device) {
  NetworkTrainable::to(device);
  low_ = low_.to(device);
  width_ = width_.to(device);
  if (options_.class_weights.defined()) {
    options_.class_weights = options_.class_weights.to(device);
  }
}

core::TensorList TableModel::inputs(const core::Batch& batch) const {
  const at::Tensor& numbers = batch["numbers"];
  const at::Tensor values = numbers.slice(1, 0, low_.size(1)).unsqueeze(2);
  const at::Tensor pieces = values.sub(low_).div_(width_).clamp_(0, 1).flatten(1);
  return {at::cat({numbers, pieces}, 1), batch["categories"]};
}

std::vector<std::string> TableModel::loss_names() const {
  return {options_.encoding.regression() ? "squared_error" : "cross_entropy"};
}

core::Normalisers TableModel::normalisers(const core::Batch& batch) const {
  if (options_.encoding.regression()) {
    return at::full({1}, static_cast<double>(batch.size()), batch["target"].options().dtype(at::kDouble));
  }
  return ops::cross_entropy_normaliser(batch["target"], options_.class_weights).reshape({1});
}

core::LossTerms TableModel::loss(const core::TensorList& outputs, const core::Batch& batch) const {
  if (options_.encoding.regression()) {
    const at::Tensor off = outputs.front().squeeze(1).to(at::kFloat) - batch["target"];
    return {{"squared_error", 1, (off * off).sum()}};
  }
  return {{"cross_entropy", 1,
           ops::cross_entropy_sum(outputs.front(), batch["target"], options_.label_smoothing, options_.class_weights)}};
}

std::vector<core::NamedTensor> TableModel::evaluate(const core::TensorList& outputs, const core::Batch& batch) const {
  const at::Tensor& target = batch["target"];
  if (!options_.encoding.regression()) {
    auto totals = classification_totals(outputs.front(), target);
    if (options_.encoding.classes.size() == 2) {
      totals.push_back({"auc", auc_counts(outputs.front(), target)});
    }
    return totals;
  }
  const at::Tensor wanted = target.to(at::kDouble), off = outputs.front().squeeze(1).to(at::kDouble) - wanted;
  return {{"squares", (off * off).sum().reshape({1})},
          {"absolutes", off.abs().sum().reshape({1})},
          {"sum", wanted.sum().reshape({1})},
          {"target_squares", (wanted * wanted).sum().reshape({1})},
          {"samples", at::scalar_tensor(batch.size(), target.options().dtype(at::kLong)).reshape({1})}};
}

std::vector<core::MetricValue> TableModel::metrics(const std::vector<core::NamedTensor>& totals) const {
  if (!options_.encoding.regression()) {
    std::vector<core::MetricValue> values = classification_metrics(totals);
    if (options_.encoding.classes.size() == 2) {
      values.insert(values.begin() + 1, {"auc", area_under_curve(total(totals, "auc")), true});
    }
    return values;
  }
  const auto number = [&](const char* name) { return total(totals, name).to(at::kDouble).item<double>(); };
  const double samples = number("samples"), squares = number("squares"), sum = number("sum");
  const double spread = number("target_squares") - sum * sum / samples;
  const double unit = options_.encoding.target_deviation;
  return {{"rmse", std::sqrt(squares / samples) * unit, false},
          {"mae", number("absolutes") / samples * unit, false},
          {"r2", spread > 0 ? 1 - squares / spread : std::nan(""), true}};
}

Answers TableModel::answers(const core::TensorList& outputs) const {
  const TableEncoding& encoding = options_.encoding;
  if (encoding.regression()) {
    const at::Tensor standardised = outputs.front().squeeze(1).to(at::kDouble);
    return {standardised.mul(encoding.target_deviation).add(encoding.target_mean), {}};
  }
  return {at::softmax(outputs.front().to(at::kFloat), 1), encoding.classes};
}

std::vector<Table> TableModel::tables(const std::vector<core::NamedTensor>& totals) const {
  if (options_.encoding.regression()) {
    return {};
  }
  return {class_table(class_rows(totals, options_.encoding.classes))};
}

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// The tabular task's model: a network on encoded rows, with cross-entropy for classes or squared error for a number.
// Made by the table task; one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "stoker/tasks/network_trainable.h"
#include "stoker/tasks/table/encoder.h"

namespace stoker::tasks {

// Width of the number input that inputs() makes of an encoding's numbers.
[[nodiscard]] std::int64_t number_width(const TableEncoding& encoding);

struct TableModelOptions {
  TableEncoding encoding;
  double label_smoothing = 0;
  at::Tensor class_weights;  // float [classes], or undefined
};

class TableModel final : public NetworkTrainable {
 public:
  TableModel(std::unique_ptr<models::Network> network, TableModelOptions options);

  void to(c10::Device device) override;

  // "numbers" float32 [B, N] and "categories" int64 [B, C] to [B, number_width] and [B, C]: each number unchanged, and
  // split into the bins of its column, where bin t holds clamp((x - edge[t]) / (edge[t+1] - edge[t]), 0, 1): the
  // piecewise linear encoding of Gorishniy et al., "On Embeddings for Numerical Features in Tabular Deep Learning"
  // (2022).
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;

  // "cross_entropy" on "target" int64 [B], or "squared_error" on the standardised "target" float32 [B].
  [[nodiscard]] std::vector<std::string> loss_names() const override;
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override;
  [[nodiscard]] bool counts_samples() const override { return !options_.class_weights.defined(); }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;

  // Classes: accuracy, auc (of two classes), top5, loss, macro_f1. A number: rmse and mae in the target's unit, r2.
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override;
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override;
  // Numbers in the target's unit are float64.
  [[nodiscard]] Answers answers(const core::TensorList& outputs) const override;
  [[nodiscard]] std::vector<Table> tables(const std::vector<core::NamedTensor>& totals) const override;

 private:
  TableModelOptions options_;
  at::Tensor low_, width_;  // float32 [1, number columns, bins]; width is infinite if a column has fewer bins
};

}  // namespace stoker::tasks

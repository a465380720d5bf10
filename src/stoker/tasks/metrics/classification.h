// SPDX-License-Identifier: Apache-2.0
// Metrics of a classifier as tensors that add up over batches and ranks, and the figures from their totals. Used by
// tasks that classify, and by `stoker eval`. Thread-safe: no state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::tasks {

// With more classes no confusion matrix is counted: it would take C * C * 8 bytes, 32 MiB here.
inline constexpr std::int64_t kMostConfused = 2048;

// logits [N, C], target int64 [N]: "counts" int64 [3, C] (samples of the class, predictions of it, correct predictions
// of it), "top5" int64 [1], "loss" float64 [1] (sum of plain cross-entropy), "samples" int64 [1], and up to
// kMostConfused classes "confusion" int64 [C, C] (row: true class, column: prediction). No value is read on the host.
[[nodiscard]] std::vector<core::NamedTensor> classification_totals(const at::Tensor& logits, const at::Tensor& target);

// "accuracy" first; "top5" from six classes on; "loss" per sample; "macro_f1" (without classes that have no samples).
[[nodiscard]] std::vector<core::MetricValue> classification_metrics(const std::vector<core::NamedTensor>& totals);

// A row of a report, for one class.
struct ClassRow {
  std::string name;
  std::int64_t samples = 0;
  double precision = 0, recall = 0, f1 = 0;  // NaN without predictions or samples
  std::string mostly_taken_for;              // the class most often predicted instead; empty if none or not counted
};
[[nodiscard]] std::vector<ClassRow> class_rows(const std::vector<core::NamedTensor>& totals,
                                               const std::vector<std::string>& classes);
// "classes": the rows as a table.
[[nodiscard]] Table class_table(const std::vector<ClassRow>& rows);

}  // namespace stoker::tasks

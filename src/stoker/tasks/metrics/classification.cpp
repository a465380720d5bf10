// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/metrics/classification.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kOfClass = 0, kAsClass = 1, kRight = 2;  // rows of "counts"

const at::Tensor& total(const std::vector<core::NamedTensor>& totals, std::string_view name) {
  for (const core::NamedTensor& each : totals) {
    if (each.name == name) {
      return each.tensor;
    }
  }
  fail<ConfigError>("tasks.metrics", "no total named \"{}\"", name);
}

double f1(std::int64_t right, std::int64_t of_class, std::int64_t as_class) {
  const std::int64_t both = of_class + as_class;
  return both == 0 ? kNan : 2 * static_cast<double>(right) / static_cast<double>(both);
}

void name_confused(const at::Tensor& confusion, const std::vector<std::string>& classes, std::vector<ClassRow>& rows) {
  const auto counts = confusion.accessor<std::int64_t, 2>();
  for (std::int64_t c = 0; c < confusion.size(0); ++c) {
    std::int64_t worst = 0;
    for (std::int64_t k = 0; k < confusion.size(0); ++k) {
      if (k != c && counts[c][k] > worst) {
        worst = counts[c][k];
        rows[static_cast<std::size_t>(c)].mostly_taken_for = classes.at(static_cast<std::size_t>(k));
      }
    }
  }
}

}  // namespace

std::vector<core::NamedTensor> classification_totals(const at::Tensor& logits, const at::Tensor& target) {
  const std::int64_t classes = logits.size(1);
  const at::Tensor scores = logits.to(at::kFloat);
  const at::Tensor predicted = scores.argmax(1);
  const at::Tensor ones = at::ones_like(target);
  // Not bincount, which would read its largest value on the host.
  const auto count = [&](std::int64_t bins, const at::Tensor& bin, const at::Tensor& weight) {
    return at::zeros({bins}, target.options()).scatter_add_(0, bin, weight);
  };
  const at::Tensor right = predicted.eq(target).to(at::kLong);
  const at::Tensor counts =
      at::stack({count(classes, target, ones), count(classes, predicted, ones), count(classes, target, right)});
  const at::Tensor best = std::get<1>(at::topk(scores, std::min<std::int64_t>(5, classes), 1));
  const at::Tensor top5 = best.eq(target.unsqueeze(1)).sum().reshape({1});
  const at::Tensor loss = at::cross_entropy_loss(scores, target, {}, at::Reduction::Sum).to(at::kDouble).reshape({1});
  const at::Tensor samples = at::scalar_tensor(logits.size(0), target.options()).reshape({1});
  std::vector<core::NamedTensor> totals = {{"counts", counts}, {"top5", top5}, {"loss", loss}, {"samples", samples}};
  if (classes <= kMostConfused) {
    totals.push_back(
        {"confusion", count(classes * classes, target * classes + predicted, ones).reshape({classes, classes})});
  }
  return totals;
}

std::vector<core::MetricValue> classification_metrics(const std::vector<core::NamedTensor>& totals) {
  const at::Tensor& class_counts = total(totals, "counts");
  const auto counts = class_counts.accessor<std::int64_t, 2>();
  const auto samples = static_cast<double>(total(totals, "samples").item<std::int64_t>());
  const std::int64_t classes = class_counts.size(1);
  double right = 0, f1_sum = 0;
  int f1_classes = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    right += static_cast<double>(counts[kRight][c]);
    if (counts[kOfClass][c] > 0) {
      f1_sum += f1(counts[kRight][c], counts[kOfClass][c], counts[kAsClass][c]);
      ++f1_classes;
    }
  }
  const auto per_sample = [&](double sum) { return samples > 0 ? sum / samples : kNan; };
  std::vector<core::MetricValue> result = {{"accuracy", per_sample(right), true}};
  if (classes > 5) {
    result.push_back({"top5", per_sample(static_cast<double>(total(totals, "top5").item<std::int64_t>())), true});
  }
  result.push_back({"loss", per_sample(total(totals, "loss").item<double>()), false});
  result.push_back({"macro_f1", f1_classes > 0 ? f1_sum / f1_classes : kNan, true});
  return result;
}

std::vector<ClassRow> class_rows(const std::vector<core::NamedTensor>& totals,
                                 const std::vector<std::string>& classes) {
  const auto counts = total(totals, "counts").accessor<std::int64_t, 2>();
  std::vector<ClassRow> rows;
  for (std::int64_t c = 0; c < counts.size(1); ++c) {
    const std::int64_t of_class = counts[kOfClass][c], as_class = counts[kAsClass][c], right = counts[kRight][c];
    ClassRow row;
    row.name = classes.at(static_cast<std::size_t>(c));
    row.samples = of_class;
    row.recall = of_class > 0 ? static_cast<double>(right) / static_cast<double>(of_class) : kNan;
    row.precision = as_class > 0 ? static_cast<double>(right) / static_cast<double>(as_class) : kNan;
    row.f1 = f1(right, of_class, as_class);
    rows.push_back(std::move(row));
  }
  const auto confusion = std::ranges::find(totals, "confusion", &core::NamedTensor::name);
  if (confusion != totals.end()) {
    name_confused(confusion->tensor, classes, rows);
  }
  return rows;
}

Table class_table(const std::vector<ClassRow>& rows) {
  Table table{"classes", {"name", "samples", "precision", "recall", "f1", "mostly_taken_for"}, {}};
  for (const ClassRow& row : rows) {
    table.rows.push_back({row.name, row.samples, row.precision, row.recall, row.f1, row.mostly_taken_for});
  }
  return table;
}

}  // namespace stoker::tasks

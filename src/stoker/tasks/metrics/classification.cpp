// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/metrics/classification.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const at::Tensor& total(const std::vector<core::NamedTensor>& totals, std::string_view name) {
  for (const core::NamedTensor& each : totals) {
    if (each.name == name) {
      return each.tensor;
    }
  }
  fail<ConfigError>("tasks.metrics", "no total named \"{}\"", name);
}

double f1(double right, double samples, double predicted) {
  return samples + predicted == 0 ? kNan : 2 * right / (samples + predicted);
}

}  // namespace

std::vector<core::NamedTensor> classification_totals(const at::Tensor& logits, const at::Tensor& target) {
  const std::int64_t classes = logits.size(1);
  const at::Tensor scores = logits.to(at::kFloat);
  const at::Tensor predicted = scores.argmax(1);
  // Not bincount: it would read its largest value on the host.
  const at::Tensor cells = target * classes + predicted;
  const at::Tensor confusion = at::zeros({classes * classes}, target.options())
                                   .scatter_add_(0, cells, at::ones_like(cells))
                                   .reshape({classes, classes});
  const at::Tensor best = std::get<1>(at::topk(scores, std::min<std::int64_t>(5, classes), 1));
  const at::Tensor top5 = best.eq(target.unsqueeze(1)).sum().reshape({1});
  const at::Tensor loss = at::cross_entropy_loss(scores, target, {}, at::Reduction::Sum).to(at::kDouble).reshape({1});
  const at::Tensor samples = at::scalar_tensor(logits.size(0), target.options()).reshape({1});
  return {{"confusion", confusion}, {"top5", top5}, {"loss", loss}, {"samples", samples}};
}

std::vector<core::MetricValue> classification_metrics(const std::vector<core::NamedTensor>& totals) {
  const at::Tensor confusion = total(totals, "confusion");
  const auto samples = static_cast<double>(total(totals, "samples").item<std::int64_t>());
  const std::int64_t classes = confusion.size(0);
  const auto counts = confusion.accessor<std::int64_t, 2>();
  double right = 0, f1_sum = 0;
  int f1_classes = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    double of_class = 0, as_class = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      of_class += static_cast<double>(counts[c][k]);
      as_class += static_cast<double>(counts[k][c]);
    }
    right += static_cast<double>(counts[c][c]);
    if (of_class > 0) {
      f1_sum += f1(static_cast<double>(counts[c][c]), of_class, as_class);
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
  const at::Tensor confusion = total(totals, "confusion");
  const auto counts = confusion.accessor<std::int64_t, 2>();
  std::vector<ClassRow> rows;
  for (std::int64_t c = 0; c < confusion.size(0); ++c) {
    ClassRow row{classes.at(static_cast<std::size_t>(c)), 0, kNan, kNan, kNan, ""};
    std::int64_t predicted = 0, worst = 0;
    for (std::int64_t k = 0; k < confusion.size(0); ++k) {
      row.samples += counts[c][k];
      predicted += counts[k][c];
      if (k != c && counts[c][k] > worst) {
        worst = counts[c][k];
        row.mostly_taken_for = classes.at(static_cast<std::size_t>(k));
      }
    }
    const auto right = static_cast<double>(counts[c][c]);
    row.recall = row.samples > 0 ? right / static_cast<double>(row.samples) : kNan;
    row.precision = predicted > 0 ? right / static_cast<double>(predicted) : kNan;
    row.f1 = f1(right, static_cast<double>(row.samples), static_cast<double>(predicted));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stoker::tasks

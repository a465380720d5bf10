// SPDX-License-Identifier: Apache-2.0
// Metrics against hand-counted figures, and sums over parts against the whole.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stoker/tasks/metrics/classification.h"

namespace stoker::tasks {
namespace {

// Logits whose argmax is the given prediction.
at::Tensor logits_for(const std::vector<std::int64_t>& predictions, std::int64_t classes) {
  at::Tensor logits = at::zeros({static_cast<std::int64_t>(predictions.size()), classes}, at::kFloat);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    logits[static_cast<std::int64_t>(i)][predictions[i]] = 2.0F;
  }
  return logits;
}

double value(const std::vector<core::MetricValue>& metrics, const std::string& name) {
  for (const core::MetricValue& metric : metrics) {
    if (metric.name == name) {
      return metric.value;
    }
  }
  return -1;
}

TEST(ClassificationMetrics, HandCounted) {
  // true      0 0 0 1 1 2      predicted 0 0 1 1 0 1
  const auto totals =
      classification_totals(logits_for({0, 0, 1, 1, 0, 1}, 3), at::tensor({0, 0, 0, 1, 1, 2}, at::kLong));
  const auto metrics = classification_metrics(totals);
  EXPECT_EQ(metrics.front().name, "accuracy");
  EXPECT_DOUBLE_EQ(value(metrics, "accuracy"), 3.0 / 6);
  // F1: class 0 is 2*2/(3+3), class 1 is 2*1/(2+3), class 2 is 0.
  EXPECT_DOUBLE_EQ(value(metrics, "macro_f1"), (2.0 / 3 + 2.0 / 5 + 0) / 3);
  const double right = -std::log(std::exp(2.0) / (std::exp(2.0) + 2)), wrong = -std::log(1 / (std::exp(2.0) + 2));
  EXPECT_NEAR(value(metrics, "loss"), (3 * right + 3 * wrong) / 6, 1e-6);
  EXPECT_EQ(value(metrics, "top5"), -1);  // meaningless with three classes

  const auto rows = class_rows(totals, {"a", "b", "c"});
  EXPECT_EQ(rows[0].samples, 3);
  EXPECT_DOUBLE_EQ(rows[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(rows[0].precision, 2.0 / 3);
  EXPECT_EQ(rows[0].mostly_taken_for, "b");
  EXPECT_EQ(rows[2].recall, 0);
  EXPECT_TRUE(std::isnan(rows[2].precision));  // never predicted: missing, not 0
}

TEST(ClassificationMetrics, ManyClassesAreCountedWithoutAMatrix) {
  constexpr std::int64_t kClasses = kMostConfused + 1;
  const auto totals =
      classification_totals(logits_for({0, 7, 7, 2048}, kClasses), at::tensor({0, 7, 9, 2048}, at::kLong));
  for (const core::NamedTensor& each : totals) {
    EXPECT_LE(each.tensor.numel(), 3 * kClasses) << each.name;
  }
  const auto metrics = classification_metrics(totals);
  EXPECT_DOUBLE_EQ(value(metrics, "accuracy"), 3.0 / 4);
  EXPECT_DOUBLE_EQ(value(metrics, "macro_f1"), (1 + 2.0 / 3 + 0 + 1) / 4);
  const auto rows = class_rows(totals, std::vector<std::string>(kClasses, "x"));
  EXPECT_DOUBLE_EQ(rows[7].precision, 1.0 / 2);
  EXPECT_EQ(rows[9].recall, 0);
  EXPECT_EQ(rows[9].mostly_taken_for, "");
}

TEST(ClassificationMetrics, PartsAddUp) {
  const at::Tensor logits = at::arange(70, at::kFloat).mul(1.7).sin().reshape({10, 7});
  const at::Tensor target = at::arange(10).remainder(7);
  auto totals = classification_totals(logits.slice(0, 0, 4), target.slice(0, 0, 4));
  const auto rest = classification_totals(logits.slice(0, 4), target.slice(0, 4));
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i].tensor.add_(rest[i].tensor);
  }
  const auto parts = classification_metrics(totals);
  const auto whole = classification_metrics(classification_totals(logits, target));
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_NEAR(parts[i].value, whole[i].value, 1e-6) << parts[i].name;
  }
}

}  // namespace
}  // namespace stoker::tasks

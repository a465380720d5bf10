// SPDX-License-Identifier: Apache-2.0
// The binned numbers against a plain slow twin, the area under the curve against all pairs, errors against sums
// computed by hand.
#include "stoker/tasks/table/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stoker/models/tabular_mlp.h"
#include "stoker/tasks/metrics/binary_auc.h"

namespace stoker::tasks {
namespace {

TableEncoding two_numbers() {
  TableEncoding encoding;
  encoding.numbers = {{.name = "a", .mean = 0, .deviation = 1, .has_missing = false, .edges = {-1, 0, 2}},
                      {.name = "b", .mean = 0, .deviation = 1, .has_missing = true, .edges = {-3, 3}}};
  encoding.categories = {{"c", {"x", "y"}}};
  encoding.target = "t";
  encoding.target_mean = 5;
  encoding.target_deviation = 10;
  return encoding;
}

TableModel model_of(const TableEncoding& encoding) {
  models::TabularMlpOptions options;
  options.numbers = number_width(encoding);
  options.categories = {3};
  options.hidden = 8;
  options.outputs = encoding.regression() ? 1 : static_cast<std::int64_t>(encoding.classes.size());
  return TableModel(models::make_tabular_mlp(options),
                    {.encoding = encoding, .label_smoothing = 0, .class_weights = {}});
}

core::Batch batch_of(const at::Tensor& numbers, const at::Tensor& target) {
  core::Batch batch({}, std::vector<std::int64_t>(static_cast<std::size_t>(numbers.size(0))));
  batch.set("numbers", numbers);
  batch.set("categories", at::zeros({numbers.size(0), 1}, at::kLong));
  batch.set("target", target);
  return batch;
}

TEST(TableModel, NumbersAreCutIntoBins) {
  const TableEncoding encoding = two_numbers();
  EXPECT_EQ(number_width(encoding), 2 + 1 + 2 * 2);
  TableModel model = model_of(encoding);
  const at::Tensor numbers = at::tensor({-2.0F, -4.0F, 0.0F, -0.5F, 0.0F, 1.0F, 1.0F, 3.0F, 0.0F}).reshape({3, 3});
  const at::Tensor got = model.inputs(batch_of(numbers, at::zeros({3}))).front();
  ASSERT_EQ(got.sizes(), (std::vector<std::int64_t>{3, 7}));
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 2; ++column) {
      const auto& edges = encoding.numbers[static_cast<std::size_t>(column)].edges;
      const double x = numbers[row][column].item<double>();
      for (int bin = 0; bin < 2; ++bin) {
        const auto b = static_cast<std::size_t>(bin);
        const double expected =
            b + 1 < edges.size() ? std::clamp((x - edges[b]) / (edges[b + 1] - edges[b]), 0.0, 1.0) : 0;
        EXPECT_FLOAT_EQ(got[row][3 + 2 * column + bin].item<float>(), static_cast<float>(expected))
            << x << " in bin " << bin << " of column " << column;
      }
    }
    EXPECT_EQ(got[row][2].item<float>(), numbers[row][2].item<float>());
  }
}

TEST(TableModel, RegressionFiguresAreInTheTargetsUnit) {
  TableModel model = model_of(two_numbers());
  const at::Tensor target = at::tensor({0.0F, 1.0F, 2.0F, -1.0F});
  const at::Tensor output = at::tensor({0.5F, 1.0F, 1.0F, -1.0F}).unsqueeze(1);
  const auto totals = model.evaluate({output}, batch_of(at::zeros({4, 3}), target));
  const auto metrics = model.metrics(totals);
  EXPECT_EQ(metrics[0].name, "rmse");
  EXPECT_FALSE(metrics[0].higher_is_better);
  EXPECT_NEAR(metrics[0].value, 10 * std::sqrt((0.25 + 1) / 4), 1e-6);
  EXPECT_NEAR(metrics[1].value, 10 * 1.5 / 4, 1e-6);
  EXPECT_NEAR(metrics[2].value, 1 - 1.25 / 5.0, 1e-6);  // squares around the mean 0.5: 0.25 + 0.25 + 2.25 + 2.25
}

TEST(TableModel, LossIsASumOverTheNormaliser) {
  TableModel model = model_of(two_numbers());
  const at::Tensor target = at::tensor({0.0F, 1.0F, 2.0F, -1.0F});
  const core::Batch batch = batch_of(at::zeros({4, 3}), target);
  const at::Tensor output = at::zeros({4, 1});
  EXPECT_FLOAT_EQ(model.loss({output}, batch).front().sum.item<float>(), 6);
  EXPECT_EQ(model.normalisers(batch).item<double>(), 4);
}

TEST(BinaryAuc, IsTheShareOfPairsInOrder) {
  const at::Tensor score = at::arange(200, at::kFloat).mul(0.7).sin().mul(3);
  const at::Tensor target = at::arange(200).mul(7).remainder(5).eq(0).to(at::kLong);
  const at::Tensor logits = at::stack({at::zeros_like(score), score}, 1);
  double pairs = 0, right = 0;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 200; ++j) {
      if (target[i].item<std::int64_t>() == 1 && target[j].item<std::int64_t>() == 0) {
        ++pairs;
        const float a = score[i].item<float>(), b = score[j].item<float>();
        right += a > b ? 1 : a == b ? 0.5 : 0;
      }
    }
  }
  const at::Tensor counts = auc_counts(logits, target);
  EXPECT_NEAR(area_under_curve(counts), right / pairs, 1e-3);
  const at::Tensor half = auc_counts(logits.slice(0, 0, 90), target.slice(0, 0, 90));
  EXPECT_TRUE((half + auc_counts(logits.slice(0, 90), target.slice(0, 90))).equal(counts));
  EXPECT_DOUBLE_EQ(area_under_curve(auc_counts(at::zeros({4, 2}), at::tensor({0, 1, 1, 0}, at::kLong))), 0.5);
  EXPECT_TRUE(std::isnan(area_under_curve(auc_counts(at::zeros({2, 2}), at::zeros({2}, at::kLong)))));
}

}  // namespace
}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// A Trainable that only defines its loss terms evaluates the training loss over the whole split, for every batch size.
#include "stoker/core/trainable.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::core {
namespace {

class TwoTerms final : public Trainable {
 public:
  explicit TwoTerms(bool masked) : masked_(masked) {}
  [[nodiscard]] const std::vector<Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] TensorList inputs(const Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] TensorList forward_segment(int, TensorList x) override { return x; }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"all", "masked"}; }
  [[nodiscard]] Normalisers normalisers(const Batch& batch) const override {
    return masked_ ? at::tensor({double(batch.size()), mask(batch).sum().item<double>()}, at::kDouble)
                   : Trainable::normalisers(batch);
  }
  [[nodiscard]] LossTerms loss(const TensorList& y, const Batch& batch) const override {
    return {{"all", 1, y[0].sum()}, {"masked", 0.5, y[0].mul(mask(batch)).sum()}};
  }

 private:
  static at::Tensor mask(const Batch& batch) { return batch["x"].gt(6).to(at::kDouble); }

  bool masked_;
  std::vector<Parameter> parameters_;
};

double evaluated(TwoTerms& model, std::int64_t batch_size, std::int64_t samples = 10) {
  std::vector<NamedTensor> totals;
  for (std::int64_t first = 0; first < samples; first += batch_size) {
    const std::int64_t last = std::min(first + batch_size, samples);
    Batch batch({}, std::vector<std::int64_t>(static_cast<std::size_t>(last - first)));
    batch.set("x", at::arange(first, last, at::kDouble));
    std::vector<NamedTensor> more = model.evaluate(model.forward(model.inputs(batch)), batch);
    for (std::size_t i = 0; i < totals.size(); ++i) {
      more[i].tensor += totals[i].tensor;
    }
    totals = std::move(more);
  }
  const std::vector<MetricValue> metrics = model.metrics(totals);
  EXPECT_EQ(metrics.size(), 1U);
  EXPECT_EQ(metrics[0].name, "loss");
  EXPECT_FALSE(metrics[0].higher_is_better);
  return metrics[0].value;
}

TEST(Trainable, EvaluatesItsLossForEveryBatchSize) {
  TwoTerms model(true);
  const double expected = 45 / 10.0 + 0.5 * (7 + 8 + 9) / 3.0;  // of 0 ... 9
  for (const std::int64_t batch : {1, 3, 4, 10}) {
    EXPECT_NEAR(evaluated(model, batch), expected, 1e-12) << batch;
  }
  EXPECT_NEAR(evaluated(model, 4, 6), 15 / 6.0, 1e-12) << "a term without counted elements contributes 0";
}

TEST(Trainable, WithoutNormalisersTheLossIsAMeanOverSamples) {
  TwoTerms model(false);
  EXPECT_NEAR(evaluated(model, 3), 45 / 10.0 + 0.5 * (7 + 8 + 9) / 10.0, 1e-12);
}

TEST(Trainable, HasNoBuffersUnlessItSaysSo) { EXPECT_TRUE(TwoTerms(true).buffers().empty()); }

}  // namespace
}  // namespace stoker::core

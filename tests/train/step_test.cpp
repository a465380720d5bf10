// SPDX-License-Identifier: Apache-2.0
// Compute and commit: gradients of microbatches are the whole batch's, a failed compute leaves no trace, and a step
// that is not finite changes nothing.
#include "stoker/train/step.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stoker/base/error.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;

// A step over a toy with everything it needs.
struct Rig {
  explicit Rig(at::ScalarType dtype, StepOptions options, at::Tensor class_weights = {}, bool scaling = false,
               double ema_decay = 0)
      : model(dtype, std::move(class_weights)),
        optimizer(optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0.9}, model.parameters())),
        scaler({.scaling = scaling, .initial_scale = 1024}, at::kCPU) {
    if (ema_decay > 0) {
      ema = std::make_unique<optim::Ema>(model.parameters(), model.norm_buffers(), ema_decay);
    }
    step = std::make_unique<Step>(StepParts{model, *optimizer, scaler, ranks, ema.get()}, options);
  }
  [[nodiscard]] std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> result;
    for (const core::Parameter& parameter : model.parameters()) {
      result.push_back(parameter.tensor.grad().clone());
    }
    return result;
  }
  [[nodiscard]] std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> result;
    for (const core::Parameter& parameter : model.parameters()) {
      result.push_back(parameter.tensor.detach().clone());
    }
    return result;
  }
  [[nodiscard]] double scalar(const std::string& name) const {
    const auto& names = step->scalar_names();
    const auto column = std::ranges::find(names, name) - names.begin();
    return step->scalars()[column].item<double>();
  }

  ToyTrainable model;
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  std::unique_ptr<optim::Ema> ema;
  std::unique_ptr<Step> step;
};

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double relative_to_largest) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double largest = b[i].abs().max().item<double>();
    EXPECT_LE((a[i] - b[i]).abs().max().item<double>(), relative_to_largest * largest) << "parameter " << i;
  }
}

// The definition, written out: one forward over the whole batch, each term's mean by its own normaliser.
std::vector<at::Tensor> reference_gradients(at::ScalarType dtype, const core::Batch& batch,
                                            const at::Tensor& class_weights) {
  ToyTrainable model(dtype, class_weights);
  const auto outputs = model.forward(model.inputs(batch));
  const core::LossTerms terms = model.loss(outputs, batch);
  const at::Tensor y = batch["y"];
  const double samples =
      class_weights.defined() ? class_weights.index_select(0, y).sum().item<double>() : static_cast<double>(y.size(0));
  const double masked = batch["mask"].sum().item<double>();
  (terms[0].sum / samples + terms[1].sum * 0.25 / masked).backward();
  std::vector<at::Tensor> result;
  for (const core::Parameter& parameter : model.parameters()) {
    result.push_back(parameter.tensor.grad());
  }
  return result;
}

TEST(Step, AccumulationEqualsTheWholeBatchForEveryMicrobatch) {
  const at::Tensor weights64 = at::tensor({0.5, 2.0, 1.0, 3.0}, at::kDouble);
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    for (const at::Tensor& class_weights : {at::Tensor(), weights64.to(dtype)}) {
      const core::Batch batch = toy_batch(13, dtype);  // 13 has only uneven tails
      const auto expected = reference_gradients(dtype, batch, class_weights);
      for (const std::int64_t microbatch : {13, 12, 7, 5, 4, 3, 2, 1}) {
        StepOptions options;
        options.microbatch = microbatch;
        Rig rig(dtype, options, class_weights);
        rig.step->compute(batch, 0);
        expect_close(rig.gradients(), expected, dtype == at::kDouble ? 1e-12 : 1e-5);
      }
    }
  }
}

TEST(Step, ClippingUsesTheNormOfTheWholeGradient) {
  const core::Batch batch = toy_batch(13);
  const auto raw = reference_gradients(at::kDouble, batch, {});
  double norm = 0;
  for (const at::Tensor& gradient : raw) {
    norm += gradient.square().sum().item<double>();
  }
  norm = std::sqrt(norm);
  const double limit = norm / 3;
  for (const std::int64_t microbatch : {13, 4}) {
    StepOptions options;
    options.microbatch = microbatch;
    options.clip = limit;
    Rig rig(at::kDouble, options);
    const auto before = rig.weights();
    rig.step->compute(batch, 0);
    rig.step->commit(1.0);  // plain sgd on the first step: weights move by the clipped gradient
    std::vector<at::Tensor> moved, expected;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      moved.push_back(before[i] - rig.weights()[i]);
      expected.push_back(raw[i] * (limit / (norm + 1e-6)));
    }
    expect_close(moved, expected, 1e-12);
    EXPECT_NEAR(rig.scalar("grad_norm"), norm, 1e-5 * norm);
  }
}

TEST(Step, ReportsTheLossAndItsTerms) {
  const core::Batch batch = toy_batch(10);
  Rig rig(at::kDouble, {});
  ToyTrainable fresh;
  const core::LossTerms terms = fresh.loss(fresh.forward(fresh.inputs(batch)), batch);
  const double cross_entropy = terms[0].sum.item<double>() / 10;
  const double masked = 0.25 * terms[1].sum.item<double>() / batch["mask"].sum().item<double>();
  rig.step->compute(batch, 0);
  rig.step->commit(0.1);
  EXPECT_NEAR(rig.scalar("loss"), cross_entropy + masked, 1e-6);
  EXPECT_NEAR(rig.scalar("cross_entropy"), cross_entropy, 1e-6);
  EXPECT_NEAR(rig.scalar("masked"), masked, 1e-6);
  EXPECT_EQ(rig.scalar("skipped"), 0);
}

TEST(Step, NonFiniteStepsChangeNothingAndAreCounted) {
  Rig rig(at::kDouble, {}, {}, false, 0.9);
  rig.step->compute(toy_batch(8), 0);
  rig.step->commit(0.1);
  const auto before = rig.weights();
  core::State state_before;
  rig.optimizer->save_state(state_before);
  rig.ema->save_state(state_before);
  std::map<std::string, at::Tensor> copies;
  for (const auto& [name, tensor] : state_before.tensors) {
    copies[name] = tensor.clone();
  }
  for (int round = 1; round <= 2; ++round) {
    core::Batch bad = toy_batch(8, at::kDouble, 100);
    bad["x"].select(0, 3).fill_(std::numeric_limits<double>::quiet_NaN());
    rig.step->compute(bad, round);
    rig.step->commit(0.1);
    EXPECT_EQ(rig.scalar("skipped"), round);
  }
  core::State after;
  rig.optimizer->save_state(after);
  rig.ema->save_state(after);
  for (const auto& [name, tensor] : after.tensors) {
    EXPECT_TRUE(tensor.equal(copies[name])) << name;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(rig.weights()[i].equal(before[i]));
  }
  rig.step->compute(toy_batch(8), 3);
  rig.step->commit(0.1);
  EXPECT_EQ(rig.scalar("skipped"), 0);
  EXPECT_FALSE(rig.weights()[0].equal(before[0]));
}

TEST(Step, AFailedComputeLeavesNoTrace) {
  Rig a(at::kDouble, {}), b(at::kDouble, {});
  core::Batch broken({}, {0, 1});  // lacks the fields that the loss reads
  broken.set("x", at::full({2, 6}, 1.0, at::kDouble));
  EXPECT_THROW(b.step->compute(broken, 0), DataError);
  for (const core::Parameter& parameter : b.model.parameters()) {
    EXPECT_FALSE(parameter.tensor.grad().defined());
  }
  for (Rig* rig : {&a, &b}) {
    rig->step->compute(toy_batch(9), 0);
    rig->step->commit(0.1);
  }
  for (std::size_t i = 0; i < a.weights().size(); ++i) {
    EXPECT_TRUE(a.weights()[i].equal(b.weights()[i]));
  }
}

TEST(Step, RefusesAModelWithNothingToTrain) {
  ToyTrainable model;
  const auto optimizer = optim::make_optimizer({}, model.parameters());
  for (const core::Parameter& parameter : model.parameters()) {
    at::Tensor(parameter.tensor).set_requires_grad(false);
  }
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  core::SingleRank ranks;
  EXPECT_THROW(Step({model, *optimizer, scaler, ranks}, {}), ConfigError);
}

}  // namespace
}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// Compute and commit: gradients of microbatches are the whole batch's, a failed compute leaves no trace, and a step
// that is not finite changes nothing.
#include "stoker/train/step.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "support/dispatch_counter.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;

// A step of a toy model with everything it needs.
struct Rig {
  explicit Rig(at::ScalarType dtype, StepOptions options, at::Tensor class_weights = {}, bool scaling = false,
               double ema_decay = 0)
      : model(dtype, std::move(class_weights)),
        optimizer(optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0.9}, model.parameters())),
        scaler({.scaling = scaling, .initial_scale = 1024}, at::kCPU) {
    if (ema_decay > 0) {
      ema = std::make_unique<optim::Ema>(model.parameters(), model.norm_buffers(), ema_decay);
    }
    step = std::make_unique<Step>(
        StepParts{.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = ema.get()},
        options);
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
        Rig rig(dtype, {}, class_weights);
        rig.step->compute(batch, 0, microbatch);
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
    options.clip = limit;
    Rig rig(at::kDouble, options);
    const auto before = rig.weights();
    rig.step->compute(batch, 0, microbatch);
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

// The loss does not show it: only the pass over the gradients can detect it.
TEST(Step, OneInfiniteGradientIsEnoughToSkip) {
  for (const bool on_a_gpu : {false, true}) {
    for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Rig rig(at::kFloat, {});
      const auto before = rig.weights();
      std::optional<core::OperatorsOnly> operators;
      if (on_a_gpu) {
        operators.emplace();
      }
      rig.step->compute(toy_batch(8, at::kFloat), 0);
      rig.model.parameters().back().tensor.grad().view({-1})[-1] = value;
      rig.step->commit(0.1);
      EXPECT_EQ(rig.scalar("skipped"), 1);
      EXPECT_TRUE(std::isfinite(rig.scalar("loss")));
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(rig.weights()[i].equal(before[i])) << i;
      }
    }
  }
}

// What a GPU runs instead of the host's shortcuts, with clipping, averages, scaling and a skipped step.
class StepAsOnAGpu : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(KernelsOr, StepAsOnAGpu, ::testing::Values(true, false),
                         [](const auto& given) { return given.param ? "Kernels" : "Operators"; });

TEST_P(StepAsOnAGpu, ComputesWhatTheHostComputes) {
  for (const bool scaling : {false, true}) {
    StepOptions options;
    options.clip = 0.5;
    Rig host(at::kFloat, options, at::tensor({1.0F, 0.5F, 2.0F, 1.5F}), scaling, 0.9);
    Rig operators(at::kFloat, options, at::tensor({1.0F, 0.5F, 2.0F, 1.5F}), scaling, 0.9);
    for (int step = 0; step < 6; ++step) {
      core::Batch batch = toy_batch(8, at::kFloat, 100 * step);
      if (step == 3) {
        batch["x"].select(0, 3).fill_(std::numeric_limits<float>::infinity());
      }
      host.step->compute(batch, step, 3);
      host.step->commit(0.1);
      {
        const core::OperatorsOnly as_on_a_gpu(/*but_kernels=*/GetParam());
        operators.step->compute(batch, step, 3);
        operators.step->commit(0.1);
      }
      expect_close(operators.weights(), host.weights(), 1e-6);
      for (const std::string& name : host.step->scalar_names()) {
        const double expected = host.scalar(name);
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(operators.scalar(name))
                                         : std::abs(operators.scalar(name) - expected) <= 1e-6 * std::abs(expected))
            << name << " of step " << step;
      }
    }
    core::State a, b;
    host.ema->save_state(a);
    operators.ema->save_state(b);
    for (const auto& [name, tensor] : a.tensors) {
      EXPECT_TRUE(b.tensor(name).allclose(tensor, 1e-6, 1e-7)) << name;
    }
  }
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

// A linear layer after a batch norm whose running statistics one infinite input would ruin.
class NormedTrainable final : public core::Trainable {
 public:
  NormedTrainable() {
    const auto add = [&](const char* name, at::Tensor value, core::Role role) {
      parameters_.push_back({name, value.set_requires_grad(true), role});
    };
    add("weight", at::full({1, 3}, 0.5, at::kFloat), core::Role::kLinear);
    add("scale", at::full({3}, 1.0, at::kFloat), core::Role::kNorm);
    add("shift", at::full({3}, 0.0, at::kFloat), core::Role::kNorm);
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList norm_buffers() const override { return {statistics_}; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList x) override {
    const at::Tensor normed =
        at::batch_norm(x[0], parameters_[1].tensor, parameters_[2].tensor, statistics_.slice(0, 0, 3),
                       statistics_.slice(0, 3, 6), true, 0.1, 1e-5, false);
    return {at::linear(normed, parameters_[0].tensor)};
  }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"square"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return at::full({1}, static_cast<double>(batch.size()), at::kDouble);
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor error = outputs[0].to(at::kFloat).squeeze(1) - batch["y"];
    return {{"square", 1, (error * error).sum()}};
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override {
    return {};
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override {
    return {};
  }
  void set_training(bool) override {}

 private:
  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
  at::Tensor statistics_ = at::full({6}, 1.0, at::kFloat);
};

core::Batch normed_batch(double spike = 0) {
  core::Batch batch({}, {0, 1, 2, 3});
  at::Tensor x = at::arange(12, at::kFloat).mul(0.9).sin().reshape({4, 3});
  x[1][2] += spike;
  batch.set("x", x);
  batch.set("y", at::arange(4, at::kFloat));
  return batch;
}

TEST(Step, ASkippedStepRuinsNeitherRunningStatisticsNorTheirAverage) {
  NormedTrainable model;
  core::SingleRank ranks;
  const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  optim::Ema ema(model.parameters(), model.norm_buffers(), 0.9);
  Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, {});
  step.compute(normed_batch(), 0);
  step.commit(0.01);
  const at::Tensor before = model.norm_buffers().front().clone();
  step.compute(normed_batch(std::numeric_limits<double>::infinity()), 1);
  step.commit(0.01);
  EXPECT_TRUE(model.norm_buffers().front().equal(before));
  const optim::Ema::InPlace averages(ema);
  EXPECT_TRUE(model.norm_buffers().front().isfinite().all().item<bool>());
  for (const core::Parameter& parameter : model.parameters()) {
    EXPECT_TRUE(parameter.tensor.isfinite().all().item<bool>()) << parameter.name;
  }
}

// Counts the outermost operators of a step that clips, averages, scales and has a batch norm. There were 57 without the
// two kernels, the single kernel of the averages and copies by list; there are 18 with them.
TEST(Step, CommitsWithFewKernels) {
  NormedTrainable model;
  core::SingleRank ranks;
  const auto optimizer = optim::make_optimizer({.name = "sgd"}, model.parameters());
  precision::GradScaler scaler({.scaling = true}, at::kCPU);
  optim::Ema ema(model.parameters(), model.norm_buffers(), 0.9);
  Step step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, {.clip = 1});
  const core::OperatorsOnly as_on_a_gpu(/*but_kernels=*/true);
  step.compute(normed_batch(), 0);
  const stoker::testing::DispatchCounter counter;
  step.commit(0.01);
  EXPECT_LE(counter.outermost(), 20);
}

// Mixed precision through the whole step: near the float32 gradient, and scaling changes nothing but rounding.
TEST(Step, MixedPrecisionStaysNearFloat32) {
  const core::Batch batch = toy_batch(16, at::kFloat);
  const auto moved = [&](at::ScalarType dtype, bool scaling) {
    StepOptions options;
    options.autocast = dtype;
    Rig rig(at::kFloat, options, {}, scaling);
    const auto before = rig.weights();
    rig.step->compute(batch, 0);
    rig.step->commit(1.0);
    std::vector<at::Tensor> result;
    for (std::size_t i = 0; i < before.size(); ++i) {
      result.push_back(before[i] - rig.weights()[i]);
    }
    return result;
  };
  const auto exact = moved(at::kFloat, false);
  const auto bf16 = moved(at::kBFloat16, false);
  expect_close(bf16, exact, 0.03);  // bfloat16 has 8 bits of mantissa
  EXPECT_FALSE(bf16[0].equal(exact[0])) << "autocast was off";
  expect_close(moved(at::kHalf, true), exact, 0.005);
  expect_close(moved(at::kFloat, true), exact, 1e-6);
}

TEST(Step, AnEmptySliceAndAnUncountedTermAreNoErrors) {
  Rig rig(at::kDouble, {}, at::tensor({0.0, 1.0, 1.0, 1.0}, at::kDouble));
  core::Batch batch = toy_batch(3);
  batch.set("y", at::zeros({3}, at::kLong));  // class weight 0: nothing counts, though smoothing leaves a sum
  batch.set("mask", at::zeros({3, 4}, at::kDouble));
  rig.step->compute(batch, 0);
  rig.step->commit(0.1);
  EXPECT_EQ(rig.scalar("loss"), 0);
  EXPECT_EQ(rig.scalar("skipped"), 0);
  rig.step->compute(toy_batch(4).slice(2, 2), 1);
  rig.step->commit(0.1);
  EXPECT_EQ(rig.scalar("skipped"), 0);
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
  EXPECT_THROW(Step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {}), ConfigError);
}

TEST(Step, CommitNeedsACompute) {
  ToyTrainable model;
  Step step(model, {.name = "adamw"});
  EXPECT_THROW(step.commit(0.1), ConfigError);
  step.compute(toy_batch(8), 0);
  step.commit(0.1);
  const at::Tensor before = model.parameters()[0].tensor.detach().clone();
  EXPECT_THROW(step.commit(0.1), ConfigError) << "AdamW would move the weights again";
  step.compute(toy_batch(8), 1);
  step.drop();
  EXPECT_THROW(step.commit(0.1), ConfigError);
  EXPECT_TRUE(model.parameters()[0].tensor.equal(before));
}

// Its loss draws random numbers, though it says that no segment does.
class NoisyLoss final : public ToyTrainable {
 public:
  [[nodiscard]] bool draws(int) const override { return false; }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    core::LossTerms terms = ToyTrainable::loss(outputs, batch);
    terms[0].sum = terms[0].sum * at::rand({1}, at::kDouble)[0];
    return terms;
  }
};

TEST(Step, RandomNumbersOutsideOfSegmentsFollowFromTheStep) {
  const auto gradient = [](std::int64_t number) {
    NoisyLoss model;
    Step step(model, {.name = "sgd"});
    (void)at::rand({3});  // what other code draws does not matter
    step.compute(toy_batch(8), number, /*microbatch=*/3);
    return model.parameters()[0].tensor.grad().clone();
  };
  EXPECT_TRUE(gradient(4).equal(gradient(4)));
  EXPECT_FALSE(gradient(4).equal(gradient(5)));
}

// Its loss has a term that it does not name.
class Misnamed final : public ToyTrainable {
 public:
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
};

TEST(Step, TermsThatAreNotNamedAreRefused) {
  Misnamed model;
  Step step(model, {.name = "sgd"});
  EXPECT_THROW(step.compute(toy_batch(8), 0), ConfigError);
}

}  // namespace
}  // namespace stoker::train

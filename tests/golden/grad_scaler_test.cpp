// SPDX-License-Identifier: Apache-2.0
// Scaled training compared with torch.amp.GradScaler (make_steps.py), step by step: injected overflows in float32 and
// float64, and float16's own overflows.
#include <map>

#include "golden/training.h"

namespace stoker::golden {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Overflow {
  const char* parameter;
  float value;
};
const std::map<int, Overflow> kOverflows{
    {2, {"conv1.weight", kInf}}, {3, {"fc.bias", std::numeric_limits<float>::quiet_NaN()}}, {9, {"bn2.weight", -kInf}}};

void inject(const Training& training, const Overflow& overflow) {
  for (const core::Parameter& parameter : training.model.parameters()) {
    if (parameter.name == overflow.parameter) {
      const at::Tensor grad = parameter.tensor.grad(), flat = grad.flatten().clone();
      flat[1].fill_(overflow.value);
      at::Tensor(grad).copy_(flat.view(grad.sizes()));
    }
  }
}

void check_injected(const std::string& optimizer, at::ScalarType dtype, const std::vector<std::string>& moments) {
  SCOPED_TRACE(optimizer + ", " + c10::toString(dtype));
  const at::Tensor rows = steps_file()[optimizer + ".scaled"], scales = steps_file()[optimizer + ".scaled.scale"];
  Training training(optimizer, dtype, 0, {.initial_scale = 8, .growth_interval = 3});
  int skipped = 0;
  for (int step = 0; step < rows.size(0); ++step) {
    SCOPED_TRACE(step);
    training.compute(small_batch(step, dtype), step);
    if (const auto found = kOverflows.find(step); found != kOverflows.end()) {
      inject(training, found->second);
      ++skipped;
    } else {
      skipped = 0;
    }
    training.step.commit(peak_lr(optimizer));
    const core::State state = training.state();
    EXPECT_EQ(state.tensor("scaler.scale").item<double>(), scales[step][0].item<double>());
    EXPECT_EQ(state.tensor("scaler.growth_tracker").item<double>(), scales[step][1].item<double>());
    EXPECT_EQ(state.tensor("ema.updates").item<double>(), scales[step][2].item<double>());
    EXPECT_EQ(state.tensor("optimizer.step").item<double>(), scales[step][2].item<double>());
    EXPECT_EQ(training.scalar("skipped"), skipped);
    training.expect(rows[step], tolerance(dtype), moments);
  }
}

TEST(GoldenScaler, InjectedOverflowsSkipAndRecover) {
  check_injected("adamw", at::kDouble, {"exp_avg", "exp_avg_sq"});
  check_injected("momentum", at::kDouble, {"momentum"});
  check_injected("momentum", at::kFloat, {"momentum"});
}

// Two linear layers, as in make_steps.py's half().
class TwoLayers final : public core::Trainable {
 public:
  TwoLayers() {
    const auto add = [&](const char* name, at::IntArrayRef shape, core::Role role) {
      parameters_.push_back({name, weight(name, shape).to(at::kFloat).set_requires_grad(true), role});
    };
    add("fc1.weight", {16, 12}, core::Role::kLinear), add("fc1.bias", {16}, core::Role::kBias);
    add("fc2.weight", {3, 16}, core::Role::kLinear), add("fc2.bias", {3}, core::Role::kBias);
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList x) override {
    const auto layer = [&](std::size_t i) {
      return models::Linear{parameters_[i].tensor, parameters_[i + 1].tensor, nullptr};
    };
    return {layer(2)(at::tanh(layer(0)(x[0])))};
  }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return ops::cross_entropy_normaliser(batch["y"]).reshape({1});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"cross_entropy", 1, ops::cross_entropy_sum(outputs[0], batch["y"])}};
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
};

TEST(GoldenScaler, Float16FindsItsScale) {
  const at::Tensor scales = steps_file()["half.scale"];
  TwoLayers model;
  core::SingleRank ranks;
  const auto optimizer = optim::make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0.9}, model.parameters());
  precision::GradScaler scaler({.initial_scale = 0x1p24, .growth_interval = 4}, at::kCPU);
  train::Step step({model, *optimizer, scaler, ranks}, {.autocast = at::kHalf});
  for (int number = 0; number < scales.size(0); ++number) {
    core::Batch batch({}, std::vector<std::int64_t>(kRows));
    batch.set("x", uniform("row " + std::to_string(number), {kRows, 12}, -2, 2).to(at::kFloat));
    batch.set("y", below("y " + std::to_string(number), {kRows}, 3));
    step.compute(batch, number);
    step.commit(0.05);
    core::State state;
    scaler.save_state(state);
    EXPECT_EQ(state.tensor("scaler.scale").item<double>(), scales[number][0].item<double>()) << number;
    EXPECT_EQ(state.tensor("scaler.growth_tracker").item<double>(), scales[number][1].item<double>()) << number;
  }
  std::vector<at::Tensor> weights;
  for (const core::Parameter& parameter : model.parameters()) {
    weights.push_back(parameter.tensor.detach().flatten());
  }
  constexpr double kHalfDigits = 2e-3;
  expect_near(at::cat(weights), steps_file()["half.weights"], kHalfDigits, "weights");
}

}  // namespace
}  // namespace stoker::golden

// SPDX-License-Identifier: Apache-2.0
// Half weights step as float32 weights do: small gradients survive the division by the scale, and microbatches add up
// in float32.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

#include "stoker/precision/policy.h"
#include "stoker/train/step.h"

namespace stoker::train {
namespace {

// The sum over samples of w . x: the gradient of w is the sum of the samples, whatever w is.
class Line final : public core::Trainable {
 public:
  Line(std::int64_t width, double weight) : weight_(weight) {
    parameters_ = {{"w", at::ones({width}).set_requires_grad(true), core::Role::kLinear}};
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override { return buffers_; }
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList x) override {
    return {parameters_[0].tensor * x[0].to(parameters_[0].tensor.scalar_type())};
  }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"sum"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch&) const override { return at::ones({1}, at::kDouble); }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch&) const override {
    return {{"sum", weight_, outputs[0].to(at::kFloat).sum()}};
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
  double weight_;
};

core::Batch rows(const at::Tensor& x) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(x.size(0)), 0);
  core::Batch batch({}, indices);
  batch.set("x", x);
  return batch;
}

// How far w has moved after a step of plain SGD; for half weights, how far their master has.
at::Tensor moved(const at::Tensor& x, at::ScalarType dtype, double loss_weight, StepOptions options, double lr,
                 std::int64_t microbatch = 0) {
  Line line(x.size(1), loss_weight);
  if (dtype != at::kFloat) {
    precision::convert_to_half(line.parameters(), dtype);
  }
  Step step(line, {.name = "sgd", .weight_decay = 0, .momentum = 0}, options);
  step.compute(rows(x), 0, microbatch);
  step.commit(lr);
  core::State state;
  step.save_state(state);
  const at::Tensor now = dtype == at::kFloat ? line.parameters()[0].tensor : state.tensor("optimizer.master.w");
  return 1 - now.detach().to(at::kDouble);
}

// Gradients from 4e-9 to 1.6e-6. float16's smallest number is 6e-8 and its steps there are as large.
TEST(HalfWeights, GradientsBelowFloat16sSmallestNumberCount) {
  const at::Tensor x = at::arange(1, 5, at::kFloat).pow(3).reshape({1, 4}) / 8;
  for (const double clip : {0.0, 1e9}) {
    const at::Tensor twin = moved(x, at::kFloat, 0x1p-25, {.clip = clip}, 0x1p20);
    const at::Tensor half = moved(x, at::kHalf, 0x1p-25, {.autocast = at::kHalf, .clip = clip}, 0x1p20);
    EXPECT_LT(((half - twin) / twin).abs().max().item<double>(), 1e-3) << "clip=" << clip << "\n" << half << twin;
  }
}

// 2048 and 63 times 1: a sum in float16 (or bfloat16) would stay at 2048.
TEST(HalfWeights, MicrobatchesAddUpInFloat32) {
  at::Tensor x = at::ones({64, 3});
  x[0].fill_(2048);
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const at::Tensor half = moved(x, dtype, 1, {.autocast = at::kFloat}, 0x1p-12, /*microbatch=*/1);
    const at::Tensor twin = moved(x, at::kFloat, 1, {}, 0x1p-12);
    EXPECT_TRUE(half.equal(twin)) << c10::toString(dtype) << half << twin;
  }
}

TEST(HalfWeights, AnOverflowChangesNothing) {
  const at::Tensor x = at::full({1, 2}, std::numeric_limits<float>::infinity());
  const at::Tensor half = moved(x, at::kHalf, 1, {.autocast = at::kHalf}, 1);
  EXPECT_TRUE(half.eq(0).all().item<bool>()) << half;
}

}  // namespace
}  // namespace stoker::train

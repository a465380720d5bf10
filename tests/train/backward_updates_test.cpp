// SPDX-License-Identifier: Apache-2.0
// A step that updates parameters inside backward equals a plain step bit by bit, and refuses or ends what it cannot do:
// nothing is half taken without being said.
#include "stoker/train/backward_updates.h"

#include <ATen/ops/sqrt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <limits>
#include <map>

#include "stoker/base/error.h"
#include "stoker/train/step.h"
#include "support/fault_allocator.h"
#include "support/step_state.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::expect_equal;
using stoker::testing::step_state;
using stoker::testing::StepState;
using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;
using ::testing::HasSubstr;

// The toy whose head is tied: its weight also makes an input of the first layer.
class TiedToy : public ToyTrainable {
 public:
  TiedToy() : ToyTrainable(at::kFloat) {}
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList inputs) override {
    const auto& p = parameters();
    const at::Tensor hidden = at::tanh(at::linear(inputs[0], p[0].tensor, p[1].tensor + p[2].tensor.sum(0)));
    return {at::linear(hidden, p[2].tensor, p[3].tensor)};
  }
};

// Its hidden bias is a root: at 0 the loss is finite, but the gradient is not.
class RootToy final : public ToyTrainable {
 public:
  RootToy() : ToyTrainable(at::kFloat) { parameters()[1].tensor.detach().fill_(0.5); }
  [[nodiscard]] core::TensorList forward_segment(int, core::TensorList inputs) override {
    const auto& p = parameters();
    const at::Tensor hidden = at::tanh(at::linear(inputs[0], p[0].tensor, p[1].tensor.sqrt()));
    return {at::linear(hidden, p[2].tensor, p[3].tensor)};
  }
};

optim::OptimizerOptions options_of(const std::string& name) { return {.name = name, .weight_decay = 0.1}; }

template <typename Model = TiedToy>
struct Rig {
  explicit Rig(bool in_backward, const std::string& name = "adamw", at::ScalarType autocast = at::kFloat)
      : optimizer(optim::make_optimizer(options_of(name), model.parameters())),
        scaler({.scaling = false}, at::kCPU),
        ema(model.parameters(), model.norm_buffers(), 0.9),
        step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema},
             {.autocast = autocast, .optimizer_in_backward = in_backward}) {}

  void take(std::int64_t number, double lr = 0.01) {
    step.set_lr(lr);
    step.compute(toy_batch(11, model.parameters()[0].tensor.scalar_type(), 20 * number), number);
    step.commit(lr);
  }
  [[nodiscard]] StepState state() const { return step_state(model, step, {optimizer.get(), &scaler, &ema}); }

  Model model;
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  optim::Ema ema;
  Step step;
};

template <typename Kind = Error, typename Work>
std::string failure(const Work& work) {
  try {
    work();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}
template <typename Work>
std::string refusal(const Work& work) {
  return failure<ConfigError>(work);
}

TEST(OptimizerInBackward, EqualsAPlainStep) {
  for (const char* name : {"adamw", "adam", "sgd"}) {
    for (const at::ScalarType autocast : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(name);
      Rig plain(false, name, autocast), early(true, name, autocast);
      for (int number = 0; number < 3; ++number) {
        plain.take(number, 0.01 * (number + 1));
        early.take(number, 0.01 * (number + 1));
      }
      expect_equal(early.state(), plain.state());
    }
  }
}

// The optimizer keeps float32 masters, which each update copies to the weights.
TEST(OptimizerInBackward, EqualsAPlainStepOfHalfWeights) {
  struct HalfToy : ToyTrainable {
    HalfToy() : ToyTrainable(at::kBFloat16) {}
  };
  Rig<HalfToy> plain(false), early(true);
  const auto before = early.state();
  for (int number = 0; number < 3; ++number) {
    plain.take(number);
    early.take(number);
  }
  expect_equal(early.state(), plain.state());
  EXPECT_FALSE(early.state().at("weights.head.weight").equal(before.at("weights.head.weight")));
}

// Each gradient is gone when the next one comes.
TEST(OptimizerInBackward, KeepsNoGradient) {
  Rig rig(true);
  std::size_t most = 0, calls = 0;
  for (const core::Parameter& each : rig.model.parameters()) {
    each.tensor.register_hook([&](const at::Tensor& gradient) {
      std::size_t kept = 0;
      for (const core::Parameter& other : rig.model.parameters()) {
        kept += other.tensor.grad().defined() ? 1 : 0;
      }
      most = std::max(most, kept);
      ++calls;
      return gradient;
    });
  }
  rig.take(0);
  EXPECT_EQ(calls, rig.model.parameters().size());
  EXPECT_EQ(most, 0U);
}

TEST(OptimizerInBackward, LeavesAParameterWhoseGradientIsNotFinite) {
  Rig<RootToy> rig(true);
  rig.take(0);
  rig.model.parameters()[1].tensor.detach().zero_();
  const auto before = rig.state();
  rig.step.set_lr(0.01);
  EXPECT_THAT(failure([&] { rig.step.compute(toy_batch(11, at::kFloat), 1); }),
              HasSubstr("the gradient of \"hidden.bias\" is not finite after"));
  EXPECT_TRUE(rig.step.torn());  // the head comes before it in backward
  const auto after = rig.state();
  EXPECT_TRUE(after.at("weights.hidden.bias").equal(before.at("weights.hidden.bias")));
  EXPECT_TRUE(after.at("optimizer.exp_avg.hidden.bias").equal(before.at("optimizer.exp_avg.hidden.bias")));
  EXPECT_FALSE(after.at("weights.head.weight").equal(before.at("weights.head.weight")));
  rig.step.set_lr(0.01);
  EXPECT_THAT(refusal([&] { rig.step.compute(toy_batch(11, at::kFloat), 2); }), HasSubstr("load a checkpoint"));
  EXPECT_THROW(rig.step.commit(0.01), ConfigError);
  core::State state;
  rig.step.save_state(state);
  rig.step.load_state(state);
  EXPECT_FALSE(rig.step.torn());
}

TEST(OptimizerInBackward, ALossThatIsNotFiniteChangesNothing) {
  Rig rig(true);
  rig.take(0);
  const auto before = rig.state();
  core::Batch batch = toy_batch(11, at::kFloat);
  batch.set("x", batch["x"] * std::numeric_limits<float>::quiet_NaN());
  rig.step.set_lr(0.01);
  EXPECT_THAT(failure([&] { rig.step.compute(batch, 1); }), HasSubstr("the loss is nan"));
  EXPECT_FALSE(rig.step.torn());
  expect_equal(rig.state(), before);
  rig.take(1);
}

// Fails at each allocation of a step in turn: either nothing has changed, or the step says that it is torn.
TEST(OptimizerInBackward, MemoryThatRunsOutEndsTheStep) {
  int failures = 0, torn = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    Rig rig(true);
    rig.take(0);
    const auto before = rig.state();
    const core::Batch batch = toy_batch(11, at::kFloat, 20);
    rig.step.set_lr(0.01);
    stoker::testing::FaultAllocator allocator;
    allocator.fail_at(failures + 1);
    std::string text;
    try {
      rig.step.compute(batch, 1);
      failed = false;
    } catch (const OutOfMemory& error) {
      text = error.what();
    }
    allocator.fail_at(0);
    if (failed && rig.step.torn()) {
      ++torn;
      EXPECT_THAT(text, HasSubstr("resume from the last checkpoint"));
    } else if (failed) {
      EXPECT_THAT(text, HasSubstr("0 of 4 parameters"));
      ASSERT_NO_FATAL_FAILURE(expect_equal(rig.state(), before)) << failures;
    }
  }
  EXPECT_GT(failures, 30);
  EXPECT_GT(torn, 3);
}

TEST(OptimizerInBackward, ARunNeverAsksForSmallerPasses) {
  class Halves final : public memory::BatchSplit {
   public:
    [[nodiscard]] std::int64_t passes(std::int64_t) const override { return 1; }
    void ran_out(const std::exception&, std::int64_t, bool) override { ADD_FAILURE() << "asked for another try"; }
  } split;
  Rig rig(true);
  rig.step.set_lr(0.01);
  const core::Batch batch = toy_batch(11, at::kFloat);
  for (const int allocation : {1, 5, 25}) {
    stoker::testing::FaultAllocator allocator;
    allocator.fail_at(allocation);
    EXPECT_THROW(rig.step.compute(batch, 0, split), OutOfMemory);
  }
}

TEST(OptimizerInBackward, RefusesWhatNeedsAllGradients) {
  TiedToy model;
  const auto step = [&](StepOptions options) {
    options.optimizer_in_backward = true;
    return Step(model, {.name = "sgd"}, options);
  };
  EXPECT_THAT(refusal([&] { step({.clip = 1}); }), HasSubstr("optimizer_in_backward does not work with clip"));
  EXPECT_THAT(refusal([&] { step({.autocast = at::kHalf}); }), HasSubstr("a gradient scaler"));
  Step one = step({});
  EXPECT_THAT(refusal([&] { one.compute(toy_batch(11, at::kFloat), 0); }), HasSubstr("set_lr()"));
  one.set_lr(0.1);
  EXPECT_THAT(refusal([&] { one.compute(toy_batch(11, at::kFloat), 0, 4); }), HasSubstr("split into 3"));
  one.compute(toy_batch(11, at::kFloat), 0);
  EXPECT_THAT(refusal([&] { one.commit(0.2); }), HasSubstr("learning rate of 0.1, not 0.2"));
}

TEST(OptimizerInBackward, HooksEndWithTheStepAndAreNoOneElses) {
  TiedToy model;
  {
    Step early(model, {.name = "sgd"}, {.optimizer_in_backward = true});
    EXPECT_THAT(refusal([&] { Step(model, {.name = "sgd"}, {.optimizer_in_backward = true}); }),
                HasSubstr("already has a hook"));
    const at::Tensor before = model.parameters()[0].tensor.detach().clone();
    Step other(model, {.name = "sgd"});
    other.compute(toy_batch(11, at::kFloat), 0);
    EXPECT_TRUE(model.parameters()[0].tensor.equal(before));
    EXPECT_TRUE(model.parameters()[0].tensor.grad().defined());
    other.drop();
    early.set_lr(0.1);  // the refused step took off none of these hooks
    early.compute(toy_batch(11, at::kFloat), 0);
    EXPECT_FALSE(model.parameters()[0].tensor.equal(before));
  }
  for (const core::Parameter& each : model.parameters()) {
    EXPECT_EQ(torch::autograd::impl::post_acc_grad_hooks(each.tensor), nullptr);
  }
}

}  // namespace
}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// A Step that owns its parts steps like one that is given them, and is restored from a State together with its
// optimizer.
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/train/step.h"
#include "support/toy_trainable.h"

namespace stoker::train {
namespace {

using stoker::testing::toy_batch;
using stoker::testing::ToyTrainable;

const optim::OptimizerOptions kSgd{.name = "sgd", .weight_decay = 0.01, .momentum = 0.9};

void take(Step& step, std::int64_t first, std::int64_t last) {
  for (std::int64_t number = first; number < last; ++number) {
    step.compute(toy_batch(8, at::kDouble, number * 8), number, /*microbatch=*/3);
    step.commit(0.1);
  }
}

void expect_equal(const ToyTrainable& a, const ToyTrainable& b) {
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    EXPECT_TRUE(a.parameters()[i].tensor.equal(b.parameters()[i].tensor)) << a.parameters()[i].name;
  }
}

TEST(StepWithOwnParts, StepsAsOneThatIsHandedThem) {
  ToyTrainable model, twin;
  Step step(model, kSgd, {.clip = 0.5});
  const auto optimizer = optim::make_optimizer(kSgd, twin.parameters());
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  core::SingleRank ranks;
  Step handed({.model = twin, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks}, {.clip = 0.5});
  take(step, 0, 5);
  take(handed, 0, 5);
  expect_equal(model, twin);
  EXPECT_TRUE(step.scalars().equal(handed.scalars()));
}

TEST(StepWithOwnParts, SavesAndLoadsItsOptimizer) {
  ToyTrainable model, resumed;
  Step step(model, kSgd);
  take(step, 0, 3);
  core::State state;
  step.save_state(state);
  for (auto& [name, tensor] : state.tensors) {
    tensor = tensor.clone();  // they may be the live ones
  }
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    resumed.parameters()[i].tensor.detach().copy_(model.parameters()[i].tensor.detach());
  }
  Step other(resumed, kSgd);
  other.load_state(state);
  take(step, 3, 6);
  take(other, 3, 6);
  expect_equal(model, resumed);  // momentum carried over
}

TEST(StepWithOwnParts, ScalesGradientsUnderHalfAutocastAlone) {
  ToyTrainable model;
  const auto names = [&](at::ScalarType autocast) { return Step(model, kSgd, {.autocast = autocast}).scalar_names(); };
  EXPECT_EQ(names(at::kHalf).back(), "scale");
  EXPECT_EQ(names(at::kFloat).back(), "skipped");
}

TEST(StepWithOwnParts, RefusesAnUnknownOptimizer) {
  ToyTrainable model;
  EXPECT_THROW(Step(model, {.name = "sdg"}), ConfigError);
}

}  // namespace
}  // namespace stoker::train

// SPDX-License-Identifier: Apache-2.0
// A step with recomputation is the step without, bit by bit: with accumulation, clipping, the scaler, averages, half
// precision, dropout and batch norm; and it leaves no trace when memory runs out anywhere in it.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/memory/out_of_memory.h"
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

// The toy in two segments, the first with batch norm and dropout.
class DeepToy final : public ToyTrainable {
 public:
  DeepToy() : ToyTrainable(at::kFloat) {}
  [[nodiscard]] core::TensorList norm_buffers() const override { return {statistics_}; }
  [[nodiscard]] int segments() const override { return 2; }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override {
    const auto& weights = parameters();
    if (segment == 1) {
      return {at::linear(inputs[0], weights[2].tensor, weights[3].tensor).tanh()};
    }
    const at::Tensor x = at::tanh(at::linear(inputs[0], weights[0].tensor, weights[1].tensor));
    return {at::dropout(
        at::batch_norm(x, {}, {}, statistics_.slice(0, 0, 8), statistics_.slice(0, 8), true, 0.1, 1e-5, true), 0.3,
        true)};
  }

 private:
  at::Tensor statistics_ = at::zeros({16});
};

struct Rig {
  explicit Rig(const char* recompute, at::ScalarType autocast = at::kFloat)
      : optimizer(optim::make_optimizer({.name = "adamw"}, model.parameters())),
        scaler({.scaling = autocast == at::kHalf, .initial_scale = 1024}, at::kCPU),
        ema(model.parameters(), model.norm_buffers(), 0.9),
        step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema},
             {.autocast = autocast, .clip = 0.5, .seed = 3, .recompute = memory::parse_recompute(recompute)}) {}

  void take(std::int64_t number, std::int64_t microbatch) {
    step.compute(toy_batch(11, at::kFloat, 20 * number), number, microbatch);
    step.commit(0.01);
  }
  [[nodiscard]] StepState state() const { return step_state(model, step, {optimizer.get(), &scaler, &ema}); }

  DeepToy model;
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  optim::Ema ema;
  Step step;
};

TEST(RecomputeStep, EqualsAPlainStep) {
  for (const at::ScalarType autocast : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t microbatch : {0, 4}) {
      Rig plain("none", autocast), all("all", autocast), first("every:2", autocast);
      for (int number = 0; number < 3; ++number) {
        for (Rig* rig : {&plain, &all, &first}) {
          rig->take(number, microbatch);
        }
      }
      expect_equal(all.state(), plain.state());
      expect_equal(first.state(), plain.state());
    }
  }
}

// Fails at each allocation of a step in turn, those of the recomputation among them.
TEST(RecomputeStep, LeavesNoTraceWhereverMemoryRunsOut) {
  Rig reference("none");
  reference.take(0, 4);
  reference.take(1, 3);
  Rig rig("all");
  rig.take(0, 4);
  const std::map<std::string, at::Tensor> before = rig.state();
  stoker::testing::FaultAllocator allocator;
  const core::Batch batch = toy_batch(11, at::kFloat, 20);
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    allocator.fail_at(failures + 1);
    try {
      rig.step.compute(batch, 1, 4);
      failed = false;
    } catch (const std::exception& error) {
      ASSERT_TRUE(memory::is_out_of_memory(error)) << error.what();
    }
    allocator.fail_at(0);
    rig.step.drop();
    ASSERT_NO_FATAL_FAILURE(expect_equal(rig.state(), before)) << failures;
  }
  EXPECT_GT(failures, 100);
  rig.take(1, 3);  // in smaller parts
  expect_equal(rig.state(), reference.state());
}

TEST(RecomputeStep, RefusesNamesThatTheModelLacks) {
  DeepToy model;
  EXPECT_THROW(Step(model, {.name = "sgd"}, {.recompute = memory::parse_recompute("stem")}), ConfigError);
}

}  // namespace
}  // namespace stoker::train

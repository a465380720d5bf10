// SPDX-License-Identifier: Apache-2.0
// The moving average: against a plain loop of the documented formula, as a replacement for the weights, and its state.
#include "stoker/optim/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "stoker/optim/plain_loops.h"
#include "support/dispatch_counter.h"
#include "support/fault_allocator.h"

namespace stoker::optim {
namespace {

struct Toy {
  at::Tensor weight = at::arange(4, at::kFloat).set_requires_grad(true);
  at::Tensor half = at::arange(4, at::kFloat).to(at::kHalf).set_requires_grad(true);
  at::Tensor statistics = at::arange(4, at::kFloat);
  std::vector<core::Parameter> parameters{{"weight", weight, core::Role::kLinear}, {"half", half, core::Role::kLinear}};
  void set(float value) {
    const at::NoGradGuard no_grad;
    weight.fill_(value);
    half.fill_(value);
    statistics.fill_(value);
  }
};

TEST(Ema, FollowsTheFormulaAndSkipsSkippedSteps) {
  // One decay ends past its warm-up, the other within it. On the host, and as on a GPU.
  for (const auto& [decay, gpu] : {std::pair{0.5, false}, {0.999, false}, {0.5, true}, {0.999, true}}) {
    SCOPED_TRACE(decay);
    std::optional<core::OperatorsOnly> as_on_a_gpu;
    if (gpu) {
      as_on_a_gpu.emplace();
    }
    Toy toy;
    toy.set(1);
    Ema ema(toy.parameters, {toy.statistics}, decay);
    double twin = 1;
    int t = 0;
    for (int step = 0; step < 30; ++step) {
      const auto value = static_cast<float>(step % 7);
      toy.set(value);
      const bool skipped = step % 5 == 2;
      ema.update(at::full({1}, skipped ? 1.0F : 0.0F));
      if (!skipped) {
        ++t;
        const double d = std::min(decay, (1.0 + t) / (10.0 + t));
        twin += (1 - d) * (value - twin);
      }
    }
    const Ema::InPlace averages(ema);
    EXPECT_NEAR(toy.weight[2].item<double>(), twin, 1e-5);
    EXPECT_NEAR(toy.statistics[2].item<double>(), twin, 1e-5);
    EXPECT_NEAR(toy.half[2].item<double>(), twin, 2e-3);
  }
}

TEST(Ema, TheWeightOnTheHostIsThatOfTheOperators) {
  EmaWeight host(0.9, at::kCPU), operators(0.9, at::kCPU);
  for (int step = 0; step < 120; ++step) {
    const at::Tensor found_inf = at::full({1}, step % 4 == 1 ? 1.0F : 0.0F);
    const at::Tensor given = step % 3 == 0 ? at::Tensor() : found_inf;
    host.next(given);
    {
      const core::OperatorsOnly as_on_a_gpu;
      operators.next(given);
    }
    EXPECT_EQ(host.updates().item<double>(), operators.updates().item<double>());
    EXPECT_NEAR(host.exact().item<double>(), operators.exact().item<double>(), 1e-15);
    EXPECT_EQ(host.rounded().item<float>(), operators.rounded().item<float>());
  }
}

// Sizes below and above those that threads share.
TEST(Ema, SmallAndLargeTensorsFollowTheSameFormula) {
  std::vector<core::Parameter> parameters;
  std::vector<at::Tensor> twins;
  for (const std::int64_t size : {1, 1000, 65'536, 65'537, 200'001}) {
    parameters.push_back({std::to_string(size), at::arange(size, at::kFloat).sin(), core::Role::kLinear});
    twins.push_back(parameters.back().tensor.to(at::kDouble));
  }
  Ema ema(parameters, {}, 0.9);
  for (int t = 1; t <= 5; ++t) {
    const double d = std::min(0.9, (1.0 + t) / (10.0 + t));
    for (std::size_t i = 0; i < twins.size(); ++i) {
      parameters[i].tensor.cos_();
      twins[i] += (1 - d) * (parameters[i].tensor.to(at::kDouble) - twins[i]);
    }
    ema.update();
  }
  const Ema::InPlace averages(ema);
  for (std::size_t i = 0; i < twins.size(); ++i) {
    EXPECT_LE((parameters[i].tensor.to(at::kDouble) - twins[i]).abs().max().item<double>(), 1e-6) << i;
  }
}

TEST(Ema, StandsInForTheWeightsAndGivesThemBack) {
  Toy toy;
  toy.set(1);
  Ema ema(toy.parameters, {toy.statistics}, 0.9);
  toy.set(3);
  const at::Tensor handle = toy.weight, view = toy.statistics.narrow(0, 1, 2);
  {
    const Ema::InPlace averages(ema);
    EXPECT_EQ(handle[0].item<float>(), 1);
    EXPECT_EQ(view[0].item<float>(), 1);
    EXPECT_EQ(toy.half[0].item<float>(), 1);
    EXPECT_TRUE(handle.requires_grad());
    EXPECT_THROW(ema.update(), ConfigError);
    EXPECT_THROW(const Ema::InPlace twice(ema), ConfigError);
  }
  EXPECT_EQ(handle[0].item<float>(), 3);
  EXPECT_EQ(view[0].item<float>(), 3);
  EXPECT_EQ(toy.half[0].item<float>(), 3);
}

TEST(Ema, StandsInWithoutMemoryAndWhatFailsLeavesNoTrace) {
  Toy toy;
  toy.set(1);
  Ema ema(toy.parameters, {toy.statistics}, 0.9);
  toy.set(3);
  testing::FaultAllocator allocator;
  const auto expect = [&](float value) {
    allocator.fail_at(0);
    EXPECT_EQ(toy.weight[0].item<float>(), value);
    EXPECT_EQ(toy.half[0].item<float>(), value);
    EXPECT_EQ(toy.statistics[0].item<float>(), value);
  };
  for (std::int64_t k = 1; k <= 8; ++k) {
    SCOPED_TRACE(k);
    allocator.fail_at(k);
    try {
      auto averages = std::make_unique<Ema::InPlace>(ema);
      expect(1);
      allocator.fail_at(1);
      averages.reset();  // its end cannot fail
      EXPECT_TRUE(allocator.armed());
    } catch (const c10::OutOfMemoryError&) {
    }
    expect(3);
    toy.set(1);
    ema.update();  // the average no longer stands in
    toy.set(3);
  }
  core::State state;
  const Ema::InPlace averages(ema);
  ema.save_state(state);
  EXPECT_EQ(state.tensor("ema.weight")[0].item<float>(), 1);  // the average, also while it stands in
  expect(1);
}

TEST(Ema, GoesOnFromSavedState) {
  Toy toy;
  toy.set(1);
  Ema ema(toy.parameters, {toy.statistics}, 0.9);
  toy.set(2);
  ema.update();
  core::State state;
  ema.save_state(state);
  EXPECT_EQ(state.tensors.count("ema.weight"), 1U);
  for (auto& [name, tensor] : state.tensors) {
    tensor = tensor.clone();
  }
  ema.update();
  Ema other(toy.parameters, {toy.statistics}, 0.9);
  other.load_state(state);
  other.update();
  core::State a, b;
  ema.save_state(a);
  other.save_state(b);
  for (const auto& [name, tensor] : a.tensors) {
    EXPECT_TRUE(tensor.equal(b.tensor(name))) << name;
  }
}

TEST(Ema, NeverWaits) {
  const Toy toy;
  Ema ema(toy.parameters, {toy.statistics}, 0.9);
  const at::Tensor found_inf = at::full({1}, 0.0F);
  const core::OperatorsOnly as_on_a_gpu;
  const testing::DispatchCounter counter;
  ema.update(found_inf);
  // LibTorch's CPU kernel reads the weight, a tensor, on the host; CUDA's reads it on the device.
  EXPECT_EQ(counter.calls("aten::item"), counter.calls("aten::_fused_sgd_"));
  EXPECT_EQ(counter.waits().size(), 2U);  // item() and what it calls
}

TEST(Ema, RefusesBadDecay) {
  const Toy toy;
  EXPECT_THROW(const Ema ema(toy.parameters, {}, 1.0), ConfigError);
  EXPECT_THROW(const Ema ema(toy.parameters, {}, std::nan("")), ConfigError);
}

TEST(Ema, CopiesCounts) {
  const at::Tensor count = at::full({2}, 3, at::kLong), mean = at::full({2}, 1.0, at::kFloat);
  Ema ema({}, {mean, count}, 0.5);
  count.fill_(8);
  mean.fill_(2);
  ema.update();
  const Ema::InPlace averages(ema);
  EXPECT_TRUE(count.eq(8).all().item<bool>()) << "a lerp would round it, or refuse integers";
  EXPECT_TRUE(mean.gt(1).all().item<bool>() && mean.lt(2).all().item<bool>());
}

}  // namespace
}  // namespace stoker::optim

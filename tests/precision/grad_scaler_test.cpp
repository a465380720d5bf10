// SPDX-License-Identifier: Apache-2.0
// The scaler against Python's torch.amp.GradScaler over a sequence with overflows, step for step.
#include "stoker/precision/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "golden/grad_scaler.h"
#include "stoker/base/error.h"
#include "stoker/core/host_value.h"
#include "support/dispatch_counter.h"

namespace stoker::precision {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(GradScaler, EqualsPyTorchStepForStep) {
  const std::map<int, float> overflows{{2, kInf}, {3, kNan}, {9, -kInf}};
  const at::Tensor parameter = at::ones({3}).set_requires_grad(true);
  GradScaler scaler({.initial_scale = 8, .growth_interval = 3}, at::kCPU);
  for (int step = 0; step < 14; ++step) {
    scaler.clear();
    ((parameter * at::tensor({1.0F, 2.0F, 3.0F})).sum() * scaler.current_scale()).backward();
    if (const auto found = overflows.find(step); found != overflows.end()) {
      parameter.mutable_grad()[1] = found->second;
    }
    scaler.check({parameter.grad()});
    EXPECT_EQ(scaler.found_inf().item<float>(), overflows.contains(step) ? 1 : 0) << "step " << step;
    if (scaler.found_inf().item<float>() == 0) {
      const at::NoGradGuard no_grad;
      at::Tensor(parameter).sub_(parameter.grad() / scaler.current_scale(), 0.01);
    }
    scaler.update();
    parameter.mutable_grad().reset();
    core::State state;
    scaler.save_state(state);
    const double* golden = &golden::grad_scaler[static_cast<std::size_t>(step) * 5];
    EXPECT_EQ(state.tensor("scaler.scale").item<double>(), golden[0]) << "step " << step;
    EXPECT_EQ(state.tensor("scaler.growth_tracker").item<int>(), golden[1]) << "step " << step;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(parameter[i].item<double>(), golden[2 + i], 1e-6) << "step " << step;
    }
  }
}

TEST(GradScaler, ChecksAndLeavesGradientsAsTheyAre) {
  for (const bool scaling : {false, true}) {
    GradScaler scaler({.scaling = scaling}, at::kCPU);
    const at::Tensor grad = at::full({4}, 0.1F), half = at::full({2}, 6e-8, at::kHalf);
    const at::Tensor before = grad.clone(), half_before = half.clone();
    scaler.check({grad, at::Tensor(), half});
    EXPECT_EQ(scaler.found_inf().item<float>(), 0);
    EXPECT_TRUE(grad.equal(before));
    EXPECT_TRUE(half.equal(half_before));
    scaler.check({grad, at::full({1}, kNan)});
    EXPECT_EQ(scaler.found_inf().item<float>(), 1);
    scaler.update();
    EXPECT_EQ(scaler.current_scale().item<float>(), scaling ? 32768 : 1);
    scaler.clear();
    EXPECT_EQ(scaler.found_inf().item<float>(), 0);
  }
}

TEST(GradScaler, NeverWaits) {
  GradScaler scaler({}, at::kCPU);
  const at::Tensor grad = at::ones({4});
  const core::OperatorsOnly as_on_a_gpu;
  const testing::DispatchCounter counter;
  scaler.clear();
  scaler.check({grad});
  scaler.update();
  EXPECT_GT(counter.total(), 0);
  EXPECT_TRUE(counter.waits().empty());
}

TEST(GradScaler, StateComesBack) {
  GradScaler scaler({.initial_scale = 4, .growth_interval = 2}, at::kCPU), other({}, at::kCPU);
  for (int i = 0; i < 3; ++i) {
    scaler.update();
  }
  core::State state;
  scaler.save_state(state);
  other.load_state(state);
  EXPECT_EQ(other.current_scale().item<float>(), 8);
  state.tensors.erase("scaler.scale");
  EXPECT_THROW(other.load_state(state), CheckpointError);
  EXPECT_THROW(GradScaler({.growth_factor = 1}, at::kCPU), ConfigError);
  EXPECT_THROW(GradScaler({.initial_scale = kNan}, at::kCPU), ConfigError);
}

}  // namespace
}  // namespace stoker::precision

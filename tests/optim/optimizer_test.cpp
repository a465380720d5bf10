// SPDX-License-Identifier: Apache-2.0
// Fused optimizers against Python PyTorch's plain ones; skipped steps; state that is restored; half parameters.
#include "stoker/optim/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/optimizers.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "support/dispatch_counter.h"

namespace stoker::optim {
namespace {

// The gradient that tests/golden/make_optim.py uses, too.
at::Tensor make_gradient(int step, int first, int count) {
  return (at::arange(first, first + count, at::kDouble) * 0.3 + 0.7 * step).sin() * (1 + 0.1 * step);
}

// A weight [3, 4] that decays and a bias [4] that does not.
struct Toy {
  std::vector<core::Parameter> parameters;

  explicit Toy(at::ScalarType dtype) {
    const at::Tensor weight = at::arange(1, 13, at::kDouble).sin().reshape({3, 4}).to(dtype);
    const at::Tensor bias = at::arange(1, 5, at::kDouble).cos().to(dtype);
    parameters = {{"weight", weight, core::Role::kLinear}, {"bias", bias, core::Role::kBias}};
    for (const core::Parameter& parameter : parameters) {
      parameter.tensor.set_requires_grad(true);
    }
  }
  void set_gradients(int step) const {
    const at::ScalarType dtype = parameters[0].tensor.scalar_type();
    parameters[0].tensor.mutable_grad() = make_gradient(step, 0, 12).reshape({3, 4}).to(dtype);
    parameters[1].tensor.mutable_grad() = make_gradient(step, 12, 4).to(dtype);
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    for (const core::Parameter& parameter : parameters) {
      const at::Tensor flat = parameter.tensor.detach().flatten().to(at::kDouble);
      all.insert(all.end(), flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
    }
    return all;
  }
};

struct Kind {
  const char* label;
  OptimizerOptions options;
  const std::vector<double>& golden;
};

std::vector<Kind> kinds() {
  const auto sgd = [](double momentum, bool nesterov) {
    return OptimizerOptions{.name = "sgd", .weight_decay = 0.05, .momentum = momentum, .nesterov = nesterov};
  };
  return {{"adamw", {.name = "adamw", .weight_decay = 0.05}, golden::adamw},
          {"adam", {.name = "adam", .weight_decay = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6}, golden::adam},
          {"sgd", sgd(0, false), golden::sgd},
          {"momentum", sgd(0.9, false), golden::momentum},
          {"nesterov", sgd(0.8, true), golden::nesterov}};
}

double lr_of(int step) { return 0.1 / (1 + step); }

void expect_near(const std::vector<double>& values, const std::vector<double>& golden, std::size_t offset,
                 double tolerance) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], golden[offset + i], tolerance) << "value " << i;
  }
}

TEST(Optimizer, EqualsPyTorchAfterThreeAndTenSteps) {
  for (const Kind& kind : kinds()) {
    for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12}, {at::kFloat, 2e-6}}) {
      SCOPED_TRACE(kind.label);
      const Toy toy(dtype);
      const auto optimizer = make_optimizer(kind.options, toy.parameters);
      for (int step = 0; step < 10; ++step) {
        toy.set_gradients(step);
        optimizer->step(lr_of(step));
        if (step == 2) {
          expect_near(toy.values(), kind.golden, 0, tolerance);
        }
      }
      expect_near(toy.values(), kind.golden, 16, tolerance);
    }
  }
}

// Weights in another memory order, like convolutions in channels_last. Gradients are in the same order, as autograd
// makes them, or in the plain one.
TEST(Optimizer, TakesTensorsInTheOrderInWhichTheyLie) {
  const auto turned = [](const at::Tensor& tensor) { return tensor.t().contiguous().t(); };
  for (const Kind& kind : kinds()) {
    for (const bool gradients_too : {true, false}) {
      const Toy plain(at::kDouble), toy(at::kDouble);
      const at::Tensor weight = toy.parameters[0].tensor;
      weight.set_data(turned(weight.detach()));
      const void* const place = weight.const_data_ptr();
      const auto expected = make_optimizer(kind.options, plain.parameters);
      const auto optimizer = make_optimizer(kind.options, toy.parameters);
      for (int step = 0; step < 3; ++step) {
        plain.set_gradients(step);
        toy.set_gradients(step);
        if (gradients_too) {
          weight.mutable_grad() = turned(weight.grad());
        }
        expected->step(lr_of(step));
        optimizer->step(lr_of(step));
      }
      SCOPED_TRACE(kind.label);
      expect_near(toy.values(), plain.values(), 0, 1e-13);
      EXPECT_EQ(weight.strides(), at::IntArrayRef({1, 3}));
      EXPECT_EQ(weight.const_data_ptr(), place);
    }
  }
}

TEST(Optimizer, ASkippedStepNeverHappened) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.label);
    const Toy toy(at::kFloat), straight(at::kFloat);
    const auto optimizer = make_optimizer(kind.options, toy.parameters);
    const auto other = make_optimizer(kind.options, straight.parameters);
    const at::Tensor good = at::zeros({1}), bad = at::ones({1});
    for (int step = 0; step < 6; ++step) {
      if (step == 0 || step == 3) {
        toy.set_gradients(50);
        optimizer->step(0.5, bad, {});
      }
      toy.set_gradients(step);
      optimizer->step(lr_of(step), good, {});
      straight.set_gradients(step);
      other->step(lr_of(step));
    }
    EXPECT_EQ(toy.values(), straight.values());
  }
}

TEST(Optimizer, DividesByTheGradientScale) {
  const at::Tensor scale = at::ones({}, at::kDouble) * 3.7;
  for (const Kind& kind : kinds()) {
    for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-14}, {at::kFloat, 1e-6}, {at::kHalf, 1e-2}}) {
      SCOPED_TRACE(fmt::format("{}, {}", kind.label, c10::toString(dtype)));
      const Toy toy(dtype), straight(dtype);
      const auto optimizer = make_optimizer(kind.options, toy.parameters),
                 other = make_optimizer(kind.options, straight.parameters);
      toy.set_gradients(1);
      for (const core::Parameter& parameter : toy.parameters) {
        parameter.tensor.mutable_grad().mul_(scale);
      }
      straight.set_gradients(1);
      optimizer->step(0.1, at::zeros({1}), scale);
      other->step(0.1);
      const auto values = toy.values(), expected = straight.values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(values[i], expected[i], tolerance) << i;
      }
    }
  }
}

TEST(Optimizer, GoesOnFromSavedState) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.label);
    const Toy toy(at::kFloat), resumed(at::kFloat);
    const auto optimizer = make_optimizer(kind.options, toy.parameters);
    core::State state;
    for (int step = 0; step < 8; ++step) {
      if (step == 4) {
        optimizer->save_state(state);
        for (auto& [name, tensor] : state.tensors) {
          tensor = tensor.clone();
        }
        for (std::size_t i = 0; i < 2; ++i) {
          resumed.parameters[i].tensor.set_data(toy.parameters[i].tensor.detach().clone());
        }
      }
      toy.set_gradients(step);
      optimizer->step(lr_of(step));
    }
    const auto second = make_optimizer(kind.options, resumed.parameters);
    second->load_state(state);
    for (int step = 4; step < 8; ++step) {
      resumed.set_gradients(step);
      second->step(lr_of(step));
    }
    EXPECT_EQ(toy.values(), resumed.values());
  }
}

TEST(Optimizer, LeavesOutWhatHasNoGradientOrIsFrozen) {
  const Toy toy(at::kFloat);
  toy.parameters[1].tensor.set_requires_grad(false);
  const auto optimizer = make_optimizer({}, toy.parameters);
  core::State state;
  optimizer->save_state(state);
  EXPECT_EQ(state.tensors.count("optimizer.exp_avg.weight"), 1U);
  EXPECT_EQ(state.tensors.count("optimizer.exp_avg.bias"), 0U);
  const std::vector<double> before = toy.values();
  optimizer->step(0.1);  // no gradient anywhere
  EXPECT_EQ(toy.values(), before);
}

TEST(Optimizer, KeepsFloat32MastersOfHalfParameters) {
  const Toy toy(at::kHalf);
  const auto optimizer = make_optimizer({.name = "sgd", .weight_decay = 0, .momentum = 0}, toy.parameters);
  // A thousand moves of 2^-14 each: below half of float16's last place at 1, so that without a master none would count.
  const double start = toy.parameters[0].tensor[0][0].item<double>();
  for (int step = 0; step < 1000; ++step) {
    for (const core::Parameter& parameter : toy.parameters) {
      parameter.tensor.mutable_grad() = at::ones_like(parameter.tensor);
    }
    optimizer->step(0x1p-14);
  }
  EXPECT_NEAR(toy.parameters[0].tensor[0][0].item<double>(), start - 1000 * 0x1p-14, 1e-3);
  EXPECT_EQ(toy.parameters[0].tensor.scalar_type(), at::kHalf);
}

// For each call of the fused kernels: its number of tensors, and the number of threads that it ran on.
class FusedCalls {
 public:
  FusedCalls() {
    calls().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
                                      if (std::string_view(call.name()).starts_with("aten::_fused_")) {
                                        const auto tensors = call.inputs()[0].toTensorVector().size();
                                        calls().emplace_back(tensors, at::get_num_threads());
                                      }
                                      return std::unique_ptr<at::ObserverContext>();
                                    })
                                        .needsInputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
  ~FusedCalls() { at::removeCallback(handle_); }
  FusedCalls(const FusedCalls&) = delete;
  FusedCalls& operator=(const FusedCalls&) = delete;
  static std::vector<std::pair<std::size_t, int>>& calls() {
    static std::vector<std::pair<std::size_t, int>> seen;
    return seen;
  }

 private:
  at::CallbackHandle handle_;
};

// LibTorch's kernels wake every thread for each tensor.
TEST(Optimizer, SmallTensorsStayOnOneThread) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  for (const auto& [name, numbers] : {std::pair{"adamw", 1 << 14}, std::pair{"sgd", 1 << 15}}) {
    std::vector<core::Parameter> parameters;
    for (const std::int64_t size : {std::int64_t{4}, std::int64_t{numbers}, std::int64_t{2000}}) {
      const at::Tensor value = at::ones({size}).set_requires_grad(true);
      value.mutable_grad() = at::ones({size});
      parameters.push_back({std::to_string(size), value, core::Role::kLinear});
    }
    const auto optimizer = make_optimizer({.name = name}, parameters);
    const FusedCalls seen;
    optimizer->step(0.1);
    EXPECT_THAT(FusedCalls::calls(), ::testing::UnorderedElementsAre(::testing::Pair(2U, 1), ::testing::Pair(1U, 3)))
        << name;
    EXPECT_EQ(at::get_num_threads(), 3) << "as before";
  }
  at::set_num_threads(before);
}

TEST(Optimizer, NeitherWaitsNorAllocates) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.label);
    const Toy toy(at::kFloat);
    const auto optimizer = make_optimizer(kind.options, toy.parameters);
    const at::Tensor found_inf = at::zeros({1});
    toy.set_gradients(1);
    const testing::DispatchCounter counter;
    optimizer->step(0.1, found_inf, {});
    // LibTorch's CPU kernel of Adam reads the step counter, which is in host memory there, with one item() per
    // parameter; the CUDA kernel reads it on the device.
    const std::int64_t reads = kind.options.name == "sgd" ? 0 : 2;
    EXPECT_EQ(counter.calls("aten::item"), reads);
    EXPECT_EQ(counter.waits().size(), reads == 0 ? 0U : 2U);  // item() and what it calls
    EXPECT_EQ(counter.calls("aten::empty") + counter.calls("aten::empty_strided") + counter.calls("aten::empty_like"),
              0);
  }
}

TEST(Optimizer, AppliesLrFactors) {
  const Toy toy(at::kFloat);
  OptimizerOptions options{.name = "sgd", .weight_decay = 0, .momentum = 0};
  options.lr_factor = [](const core::Parameter& parameter) { return parameter.name == "bias" ? 0.5 : 1.0; };
  const auto optimizer = make_optimizer(options, toy.parameters);
  const std::vector<double> before = toy.values();
  for (const core::Parameter& parameter : toy.parameters) {
    parameter.tensor.mutable_grad() = at::ones_like(parameter.tensor);
  }
  optimizer->step(0.25);
  EXPECT_NEAR(before[0] - toy.values()[0], 0.25, 1e-6);
  EXPECT_NEAR(before[12] - toy.values()[12], 0.125, 1e-6);
}

TEST(Optimizer, RefusesBadValuesInWords) {
  const Toy toy(at::kFloat);
  EXPECT_THROW((void)make_optimizer({.weight_decay = std::nan("")}, toy.parameters), ConfigError);
  EXPECT_THROW((void)make_optimizer({.beta1 = 1}, toy.parameters), ConfigError);
  EXPECT_THROW((void)make_optimizer({.name = "sgd", .momentum = 0, .nesterov = true}, toy.parameters), ConfigError);
  try {
    (void)make_optimizer({.name = "adamv"}, toy.parameters);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"adamw\""), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::optim

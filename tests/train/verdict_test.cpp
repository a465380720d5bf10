// SPDX-License-Identifier: Apache-2.0
// The verdict on a step is the same on the host, by the kernel's twin and by operators.
#include "stoker/train/verdict.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "stoker/core/host_value.h"

namespace stoker::train {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::vector<double> parts;  // of the loss
  double gradient;            // two gradients are full of it
  double clip;
  bool scaling;
};

enum class Way { kHost, kKernel, kOperators };

// All that a verdict writes, as one row.
at::Tensor verdict(const Case& given, Way way, at::ScalarType dtype) {
  std::vector<std::string> terms(given.parts.size(), "term");
  Verdict verdict({terms, given.clip, given.scaling}, at::kCPU);
  verdict.skipped().fill_(3);
  precision::GradScaler scaler({.scaling = given.scaling, .initial_scale = 512}, at::kCPU);
  optim::EmaWeight averages(0.9, at::kCPU);
  const std::vector<at::Tensor> grads = {at::full({3, 2}, given.gradient, dtype), at::full({2}, given.gradient, dtype)};
  std::optional<core::OperatorsOnly> as_on_a_gpu;
  if (way != Way::kHost) {
    as_on_a_gpu.emplace(way == Way::kKernel);
  }
  verdict.look(at::tensor(given.parts, at::kDouble), grads, scaler);
  at::Tensor divisor = verdict.decide(scaler, &averages);
  divisor = divisor.defined() ? divisor : at::ones({}, at::kDouble);
  return at::cat({verdict.scalars().to(at::kDouble), verdict.skip().to(at::kDouble), verdict.skipped().to(at::kDouble),
                  scaler.found_inf().to(at::kDouble), averages.updates().reshape({1}), averages.exact().reshape({1}),
                  averages.rounded().reshape({1}).to(at::kDouble), divisor.reshape({1}).to(at::kDouble)});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::vector<double>& parts : std::vector<std::vector<double>>{
           {1.5}, {1.5, -0.25, 3}, {kNan}, {1, kInf}, {kInf, -kInf}, {1e39}, {1e38, 1e38, 1e38, 1e38}}) {
    for (const double gradient : {0.3, 1e-3, 0.0, kNan, -kInf}) {
      for (const double clip : {0.0, 0.25}) {
        for (const bool scaling : {false, true}) {
          all.push_back({parts, gradient, clip, scaling});
        }
      }
    }
  }
  return all;
}

TEST(Verdict, IsTheSameHoweverItIsFound) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Case& given : cases()) {
      const at::Tensor host = verdict(given, Way::kHost, dtype);
      for (const Way way : {Way::kKernel, Way::kOperators}) {
        const at::Tensor twin = verdict(given, way, dtype);
        // The divisor of a skipped step does not matter.
        const bool skipped = host[host.numel() - 5].item<double>() > 0;
        const std::int64_t said = host.numel() - (skipped ? 1 : 0);
        EXPECT_TRUE(at::allclose(host.narrow(0, 0, said), twin.narrow(0, 0, said), 1e-6, 0, /*equal_nan=*/true))
            << host << twin;
      }
    }
  }
}

TEST(Verdict, CountsStepsInARow) {
  const at::Tensor good = at::full({1}, 1.0, at::kDouble), bad = at::full({1}, NAN, at::kDouble);
  Verdict verdict({{"loss"}, 0, false}, at::kCPU);
  precision::GradScaler scaler({.scaling = false}, at::kCPU);
  for (const auto& [parts, expected] : {std::pair{bad, 1}, {bad, 2}, {good, 0}, {bad, 1}}) {
    scaler.clear();
    verdict.look(parts, {}, scaler);
    (void)verdict.decide(scaler, nullptr);
    EXPECT_EQ(verdict.scalars()[1].item<float>(), expected);
  }
}

// The norm of 4 gradients of 3 is 6: with a limit of 2 they are divided by 3, scaled or not.
TEST(Verdict, DividesByWhatClippingAndTheScaleAskFor) {
  for (const bool scaling : {false, true}) {
    const double scale = scaling ? 512 : 1;
    Verdict verdict({{"loss"}, 2, false}, at::kCPU);
    precision::GradScaler scaler({.scaling = scaling, .initial_scale = 512}, at::kCPU);
    verdict.look(at::full({1}, 1, at::kDouble), {at::full({4}, 3 * scale, at::kFloat)}, scaler);
    const at::Tensor divisor = verdict.decide(scaler, nullptr);
    EXPECT_NEAR(divisor.item<double>(), 3 * scale, 1e-6 * scale);
    EXPECT_NEAR(verdict.scalars()[1].item<double>(), 6, 1e-6);
  }
}

}  // namespace
}  // namespace stoker::train

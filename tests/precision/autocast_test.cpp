// SPDX-License-Identifier: Apache-2.0
// Scopes of mixed precision: operators inside run in half precision, and nothing leaks out, even after an exception.
// Also half models.
#include "stoker/precision/autocast.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <thread>

#include "stoker/base/error.h"
#include "stoker/precision/policy.h"
#include "stoker/precision/process_switches.h"

namespace stoker::precision {
namespace {

at::ScalarType product_dtype() { return at::matmul(at::ones({2, 2}), at::ones({2, 2})).scalar_type(); }

TEST(Autocast, DtypeOfAPlansPrecision) {
  EXPECT_EQ(autocast_dtype("fp32"), at::kFloat);
  EXPECT_EQ(autocast_dtype("bf16"), at::kBFloat16);
  EXPECT_EQ(autocast_dtype("fp16"), at::kHalf);
}

TEST(Autocast, HoldsForItsScopeAndThread) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    {
      const AutocastGuard guard(at::kCPU, dtype);
      EXPECT_EQ(product_dtype(), dtype);
      at::ScalarType elsewhere = dtype;
      std::thread([&] { elsewhere = product_dtype(); }).join();
      EXPECT_EQ(elsewhere, at::kFloat);
      {
        const AutocastGuard off(at::kCPU, dtype, false);
        EXPECT_EQ(product_dtype(), at::kFloat);
      }
      EXPECT_EQ(product_dtype(), dtype);
    }
    EXPECT_EQ(product_dtype(), at::kFloat);
  }
  const AutocastGuard off(at::kCPU, at::kBFloat16, false);
  EXPECT_EQ(product_dtype(), at::kFloat);
}

TEST(Autocast, EndsWithAnException) {
  try {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    throw std::runtime_error("thrown inside");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(product_dtype(), at::kFloat);
  EXPECT_THROW(AutocastGuard(at::kCPU, at::kFloat), ConfigError);
  EXPECT_EQ(product_dtype(), at::kFloat);
}

TEST(Autocast, ForgetsCastWeightsAtTheOutermostEnd) {
  const at::Tensor weight = at::ones({2, 2}).set_requires_grad(true);
  const auto product = [&] {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    return at::matmul(at::ones({2, 2}), weight)[0][0].item<float>();
  };
  EXPECT_EQ(product(), 2);
  weight.set_data(at::ones({2, 2}) * 3);
  EXPECT_EQ(product(), 6);  // 2 if the first half copy had been kept
}

TEST(Policy, IsWhatWasApplied) {
  const ProcessSwitches before;
  const at::Context& context = at::globalContext();
  const auto float32 = [&](at::Float32Op op) { return context.float32Precision(at::Float32Backend::CUDA, op); };
  for (const bool on : {false, true, false}) {
    apply({.tf32 = on, .cudnn_benchmark = true, .deterministic = on});
    for (const at::Float32Op op : {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN}) {
      EXPECT_EQ(float32(op), on ? at::Float32Precision::TF32 : at::Float32Precision::IEEE);
    }
    EXPECT_EQ(context.deterministicAlgorithms(), on);
    EXPECT_EQ(context.deterministicCuDNN(), on);
    EXPECT_EQ(context.benchmarkCuDNN(), !on);  // the choice of a search may differ from run to run
  }
}

TEST(Policy, HalfModelsKeepNormsInFloat32) {
  const std::vector<core::Parameter> parameters{{"conv.weight", at::ones({2, 2}), core::Role::kConv},
                                                {"bn.weight", at::ones({2}), core::Role::kNorm},
                                                {"fc.bias", at::ones({2}), core::Role::kBias}};
  const at::Tensor handle = parameters[0].tensor.set_requires_grad(true);
  convert_to_half(parameters);
  EXPECT_EQ(handle.scalar_type(), at::kHalf);
  EXPECT_TRUE(handle.is_leaf() && handle.requires_grad());
  EXPECT_EQ(parameters[1].tensor.scalar_type(), at::kFloat);
  EXPECT_EQ(parameters[2].tensor.scalar_type(), at::kHalf);
  EXPECT_THROW(convert_to_half(parameters, at::kInt), ConfigError);
}

}  // namespace
}  // namespace stoker::precision

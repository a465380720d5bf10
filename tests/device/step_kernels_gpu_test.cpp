// SPDX-License-Identifier: Apache-2.0
// The two kernels of a step on a real GPU give the same numbers as their twins on the CPU. Prints a skip message
// without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "stoker/core/step_work.h"
#include "support/gpu.h"

namespace stoker::device {
namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0), kHost(c10::DeviceType::CPU);

at::Tensor divided(c10::Device device) {
  const at::Tensor sums = at::tensor({6.0F, -10.0F, 7.0F}).to(device), scale = at::full({}, 1024.0F).to(device);
  const at::Tensor normalisers = at::tensor({4.0, 5.0, 0.0}, at::kDouble).to(device);
  const at::Tensor parts = at::zeros_like(normalisers), gradients = at::zeros_like(sums);
  core::LossWork work;
  work.terms = 3;
  for (int k = 0; k < 3; ++k) {
    work.sums[k] = sums.const_data_ptr<float>() + k;
    work.weights[k] = 1 + 0.5 * k;
  }
  work.normalisers = normalisers.const_data_ptr<double>();
  work.scale = scale.const_data_ptr<float>();
  work.parts = parts.mutable_data_ptr<double>();
  work.gradients = gradients.mutable_data_ptr<float>();
  backend_for(device).divide_terms(work, device);
  return at::cat({parts.cpu(), gradients.cpu().to(at::kDouble)});
}

at::Tensor decided(c10::Device device, const at::Tensor& norms, double loss) {
  const at::Tensor there = norms.to(device), parts = at::full({1}, loss, at::kDouble).to(device);
  const at::Tensor scale = at::full({}, 512.0F).to(device);
  const at::Tensor floats = at::zeros({8}).to(device), doubles = at::zeros({2}, at::kDouble).to(device);
  const at::Tensor skip = at::zeros({1}, at::kBool).to(device);
  float* out = floats.mutable_data_ptr<float>();
  core::VerdictWork work;
  work.terms = 1;
  work.parts = parts.const_data_ptr<double>();
  work.norms = there.const_data_ptr<float>();
  work.norm_count = there.numel();
  work.scale = work.reported = scale.const_data_ptr<float>();
  work.clip = 0.5;
  work.ema = {0.9, doubles.mutable_data_ptr<double>(), doubles.mutable_data_ptr<double>() + 1, out};
  work.found_inf = out + 1;
  work.skipped = out + 2;
  work.divisor = out + 3;
  work.scalars = out + 4;  // loss, norm, skipped, scale
  work.skip = skip.mutable_data_ptr<bool>();
  backend_for(device).decide(work, device);
  return at::cat({floats.cpu().to(at::kDouble), doubles.cpu(), skip.cpu().to(at::kDouble)});
}

TEST(GpuStepKernels, AreTheirTwins) {
  STOKER_NEEDS_GPU();
  EXPECT_TRUE(divided(kGpu).equal(divided(kHost)));
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const std::int64_t count : {0, 1, 255, 256, 1000}) {
    const at::Tensor norms = at::arange(count, at::kFloat).sin().abs();
    EXPECT_TRUE(at::allclose(decided(kGpu, norms, 1.5), decided(kHost, norms, 1.5), 1e-6, 0)) << count;
  }
  for (const auto& [norm, loss] : {std::pair{kInf, 1.0F}, {1.0F, -kInf}, {1.0F, std::nanf("")}}) {
    const at::Tensor norms = at::full({3}, norm);
    EXPECT_TRUE(at::allclose(decided(kGpu, norms, loss), decided(kHost, norms, loss), 1e-6, 0, /*equal_nan=*/true));
  }
}

}  // namespace
}  // namespace stoker::device

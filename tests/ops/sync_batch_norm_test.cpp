// SPDX-License-Identifier: Apache-2.0
// Batch norm over ranks, against torch's batch norm of all samples in one process: outputs, gradients, running
// statistics; uneven parts, a rank without samples, large means, half inputs.
#include "stoker/ops/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "stoker/base/error.h"
#include "support/lockstep_ranks.h"

namespace stoker::ops {
namespace {

using testing::LockstepRanks;
constexpr std::int64_t kChannels = 5, kSamples = 7;

struct Normed {
  at::Tensor y, dx, d_weight, d_bias, running_mean, running_var;
};

at::Tensor inputs(at::ScalarType type, double shift) {
  return at::arange(kSamples * kChannels * 12, at::kDouble)
      .mul(0.37)
      .sin()
      .mul(1.7)
      .add(shift)
      .reshape({kSamples, kChannels, 3, 4})
      .to(type);
}

// Samples first ... end - 1 of the inputs; ranks: null: by torch.
Normed normed(std::int64_t first, std::int64_t end, core::NormExchange* ranks, at::ScalarType type, double shift) {
  const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor x = inputs(type, shift).slice(0, first, end).clone().set_requires_grad(true);
  const at::Tensor weight = at::arange(kChannels, at::kDouble).cos().to(wide).set_requires_grad(true);
  const at::Tensor bias = at::arange(kChannels, at::kDouble).sin().to(wide).set_requires_grad(true);
  Normed result;
  result.running_mean = at::zeros({kChannels}, wide);
  result.running_var = at::ones({kChannels}, wide);
  at::Tensor y = ranks == nullptr
                     ? at::batch_norm(x, weight, bias, result.running_mean, result.running_var, true, 0.3, 1e-5, false)
                     : sync_batch_norm(x, {weight, bias, result.running_mean, result.running_var, 0.3, 1e-5}, *ranks);
  y.relu_();  // in place, as in the models
  const at::Tensor factors = at::arange(kSamples * kChannels * 12, at::kDouble).mul(0.11).cos();
  (y * factors.reshape({kSamples, kChannels, 3, 4}).slice(0, first, end).to(type)).sum().backward();
  result.y = y.detach();
  result.dx = x.grad();
  result.d_weight = weight.grad();
  result.d_bias = bias.grad();
  return result;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// borders: of the ranks' samples.
void expect_one_process(const std::vector<std::int64_t>& borders, at::ScalarType type, double shift, double tolerance) {
  const int size = static_cast<int>(borders.size()) - 1;
  const Normed whole = normed(0, kSamples, nullptr, type, shift);
  std::vector<Normed> parts(static_cast<std::size_t>(size));
  LockstepRanks(size).run([&](core::Communicator& ranks) {
    core::NormExchange exchange(ranks, {1, kChannels + 2}, at::kCPU);  // a wider one is elsewhere
    exchange.begin(1);
    const auto rank = static_cast<std::size_t>(ranks.rank());
    if (borders[rank] < borders[rank + 1]) {
      parts[rank] = normed(borders[rank], borders[rank + 1], &exchange, type, shift);
    }
    exchange.skip_rest();
  });
  std::vector<at::Tensor> y, dx;
  at::Tensor d_weight, d_bias, mean;
  for (const Normed& each : parts) {
    if (each.y.defined()) {
      y.push_back(each.y);
      dx.push_back(each.dx);
      d_weight = d_weight.defined() ? d_weight + each.d_weight : each.d_weight;
      d_bias = d_bias.defined() ? d_bias + each.d_bias : each.d_bias;
      EXPECT_LE(distance(each.running_mean, whole.running_mean), tolerance);
      EXPECT_LE(distance(each.running_var, whole.running_var), tolerance);
      mean = mean.defined() ? mean : each.running_mean;
      EXPECT_TRUE(at::equal(each.running_mean, mean)) << "ranks have other statistics";
    }
  }
  EXPECT_LE(distance(at::cat(y), whole.y), tolerance);
  EXPECT_LE(distance(at::cat(dx), whole.dx), tolerance);
  EXPECT_LE(distance(d_weight, whole.d_weight), 10 * tolerance);
  EXPECT_LE(distance(d_bias, whole.d_bias), 10 * tolerance);
  EXPECT_EQ(at::cat(dx).scalar_type(), type);
}

TEST(SyncBatchNorm, EqualsBatchNormOfAllSamples) {
  expect_one_process({0, 3, 7}, at::kDouble, 0, 1e-12);
  expect_one_process({0, 1, 6, 7}, at::kDouble, 0, 1e-12);
  expect_one_process({0, 0, 4, 4, 7}, at::kDouble, 0, 1e-12);  // two ranks without samples
  expect_one_process({0, 3, 7}, at::kFloat, 0, 1e-5);
  expect_one_process({0, 3, 7}, at::kBFloat16, 0, 5e-2);
}

// Sums of squares would lose all digits.
TEST(SyncBatchNorm, KeepsItsDigitsFarFromZero) { expect_one_process({0, 2, 7}, at::kDouble, 1e6, 1e-7); }

TEST(SyncBatchNorm, MoreNormsThanAgreedOnAreAnError) {
  core::SingleRank alone;
  core::NormExchange exchange(alone, {1, kChannels}, at::kCPU);
  exchange.begin(1);
  (void)normed(0, 3, &exchange, at::kDouble, 0);
  try {
    (void)normed(0, 3, &exchange, at::kDouble, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("more batch norms than the 1"));
  }
}

}  // namespace
}  // namespace stoker::ops

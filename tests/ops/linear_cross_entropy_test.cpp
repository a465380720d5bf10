// SPDX-License-Identifier: Apache-2.0
// The product and its cross-entropy in pieces against both computed as a whole. cross_entropy_test compares the whole
// with PyTorch's numbers.
#include "stoker/ops/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/ops/cross_entropy.h"
#include "support/fault_allocator.h"

namespace stoker::ops {
namespace {

at::Tensor waves(at::IntArrayRef shape, double step, at::ScalarType dtype = at::kDouble) {
  std::int64_t numel = 1;
  for (const std::int64_t each : shape) {
    numel *= each;
  }
  return (at::arange(numel, at::kDouble) * step).sin().mul(2).reshape(shape).to(dtype);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

struct Result {
  at::Tensor sum, hidden, table;
};

// rows 0: as a whole.
Result run(std::int64_t rows, const at::Tensor& target, at::ScalarType dtype) {
  const at::Tensor hidden = waves({target.size(0), 6}, 1.3, dtype).set_requires_grad(true);
  const at::Tensor table = waves({11, 6}, 0.7, dtype).set_requires_grad(true);
  const at::Tensor sum = rows == 0 ? cross_entropy_sum(at::linear(hidden, table), target)
                                   : linear_cross_entropy_sum(hidden, table, target, rows);
  (sum * 0.3).backward();
  return {sum.detach(), hidden.grad(), table.grad()};
}

TEST(LinearCrossEntropy, PiecesEqualTheWhole) {
  const at::Tensor target = at::tensor({3, 0, 10, -100, 5, 5, -100}, at::kLong);
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12}, {at::kFloat, 1e-5}}) {
    const Result whole = run(0, target, dtype);
    for (const std::int64_t rows : {1, 2, 3, 7, 100}) {
      SCOPED_TRACE(rows);
      const Result pieces = run(rows, target, dtype);
      EXPECT_LT(largest_difference(pieces.sum, whole.sum), tolerance);
      EXPECT_LT(largest_difference(pieces.hidden, whole.hidden), tolerance);
      EXPECT_LT(largest_difference(pieces.table, whole.table), tolerance);
    }
  }
}

// A kept graph may be used again: what the forward pass stored is scaled in place only on the last use.
TEST(LinearCrossEntropy, ASecondBackwardScalesWhatTheFirstDid) {
  const at::Tensor target = at::tensor({3, 0, 10, -100, 5}, at::kLong);
  const Result once = run(2, target, at::kDouble);  // scaled by 0.3
  const at::Tensor hidden = waves({5, 6}, 1.3).set_requires_grad(true),
                   table = waves({11, 6}, 0.7).set_requires_grad(true);
  const at::Tensor sum = linear_cross_entropy_sum(hidden, table, target, 2);
  for (const double scale : {0.0, 7.0, 0.3}) {
    hidden.mutable_grad().reset();
    table.mutable_grad().reset();
    sum.backward(at::tensor(scale, at::kDouble), /*retain_graph=*/scale != 0.3);
  }
  EXPECT_TRUE(hidden.grad().equal(once.hidden));
  EXPECT_TRUE(table.grad().equal(once.table));
  EXPECT_THROW(sum.backward(), c10::Error);  // the graph is gone
}

TEST(LinearCrossEntropy, RefusesSecondDerivatives) {
  const at::Tensor hidden = waves({2, 6}, 1.3).set_requires_grad(true), table = waves({11, 6}, 0.7);
  const at::Tensor sum = linear_cross_entropy_sum(hidden, table, at::tensor({1, 2}, at::kLong), 1);
  EXPECT_THROW(sum.backward({}, /*retain_graph=*/true, /*create_graph=*/true), ConfigError);
}

// Tokens of large logits have one with all of the probability; exp() of the others is 0.
TEST(LinearCrossEntropy, LargeLogitsStayFinite) {
  const at::Tensor hidden = waves({4, 6}, 1.3, at::kFloat).mul_(1e4).set_requires_grad(true);
  const at::Tensor table = waves({11, 6}, 0.7, at::kFloat), target = at::tensor({1, 2, 3, 4}, at::kLong);
  const at::Tensor sum = linear_cross_entropy_sum(hidden, table, target, 3);
  sum.backward();
  EXPECT_LT(largest_difference(sum, cross_entropy_sum(at::linear(hidden, table), target)), 1e-6);
  EXPECT_TRUE(hidden.grad().isfinite().all().item<bool>());
}

TEST(LinearCrossEntropy, WithoutGradientsAndWithoutRows) {
  const at::Tensor hidden = waves({5, 6}, 1.3), table = waves({11, 6}, 0.7);
  const at::Tensor target = at::tensor({1, 2, 3, 4, 5}, at::kLong);
  const at::NoGradGuard no_grad;
  const at::Tensor sum = linear_cross_entropy_sum(hidden, table, target, 2);
  EXPECT_FALSE(sum.requires_grad());
  EXPECT_LT(largest_difference(sum, cross_entropy_sum(at::linear(hidden, table), target)), 1e-12);
  EXPECT_EQ(linear_cross_entropy_sum(hidden.slice(0, 0, 0), table, target.slice(0, 0, 0), 2).item<double>(), 0);
  const at::AutoGradMode with_gradients(true);
  const at::Tensor trained = table.clone().set_requires_grad(true);
  linear_cross_entropy_sum(hidden.slice(0, 0, 0), trained, target.slice(0, 0, 0), 2).backward();
  EXPECT_TRUE(trained.grad().equal(table * 0));
}

TEST(LinearCrossEntropy, NeverHoldsAllLogits) {
  constexpr std::int64_t kTokens = 512, kTable = 4096, kRows = 32;
  const at::Tensor hidden = waves({kTokens, 6}, 1.3, at::kFloat).set_requires_grad(true);
  const at::Tensor table = waves({kTable, 6}, 0.7, at::kFloat).set_requires_grad(true);
  const at::Tensor target = at::arange(kTokens, at::kLong);
  testing::FaultAllocator counted;
  linear_cross_entropy_sum(hidden, table, target, kRows).backward();
  EXPECT_LE(counted.take_largest(), kRows * kTable * 4);
  cross_entropy_sum(at::linear(hidden, table), target).backward();
  EXPECT_GE(counted.take_largest(), kTokens * kTable * 4);
}

// The gradient of a table, and the logits of a piece: nothing else of their size.
TEST(LinearCrossEntropy, HoldsNoSecondTable) {
  constexpr std::int64_t kTokens = 64, kTable = 4096, kWidth = 128, kRows = 16;
  const at::Tensor hidden = waves({kTokens, kWidth}, 1.3, at::kFloat).set_requires_grad(true);
  const at::Tensor table = waves({kTable, kWidth}, 0.7, at::kFloat).set_requires_grad(true);
  const at::Tensor target = at::arange(kTokens, at::kLong);
  const device::TensorBytes counted(hidden.device());
  linear_cross_entropy_sum(hidden, table, target, kRows).backward();
  EXPECT_LT(counted.peak(), kTable * kWidth * 4 + kRows * kTable * 4 + 200'000);
  EXPECT_GT(counted.peak(), kTable * kWidth * 4 + kRows * kTable * 4);
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const at::Tensor hidden = waves({2, 6}, 1.3), table = waves({11, 6}, 0.7), target = at::tensor({1, 2}, at::kLong);
  EXPECT_THROW((void)linear_cross_entropy_sum(hidden, table, target, 0), ConfigError);
  EXPECT_THROW((void)linear_cross_entropy_sum(hidden, table.slice(1, 0, 5), target, 1), DataError);
  EXPECT_THROW((void)linear_cross_entropy_sum(hidden, table, target.slice(0, 0, 1), 1), DataError);
  EXPECT_THROW((void)linear_cross_entropy_sum(hidden, table, target.to(at::kInt), 1), DataError);
}

}  // namespace
}  // namespace stoker::ops

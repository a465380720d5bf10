// SPDX-License-Identifier: Apache-2.0
// Cross-entropy against Python PyTorch's numbers, and the property it exists for: pieces add up to the whole.
#include "stoker/ops/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "golden/cross_entropy.h"
#include "stoker/base/error.h"

namespace stoker::ops {
namespace {

at::Tensor make_logits() { return ((at::arange(20, at::kDouble) * 1.3).sin() * 3).reshape({5, 4}); }
at::Tensor make_target() { return at::tensor({0, 3, 1, 1, 2}, at::kLong); }
at::Tensor make_weights() { return at::tensor({0.5, 2.0, 1.0, 0.25}, at::kDouble); }

struct Case {
  const char* name;
  double smoothing;
  bool weighted;
  const std::vector<double>& golden;  // sum, mean, gradient of the sum
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{"plain", 0, false, golden::cross_entropy_plain},
                                     {"smoothed", 0.1, false, golden::cross_entropy_smoothed},
                                     {"weighted", 0, true, golden::cross_entropy_weighted},
                                     {"both", 0.2, true, golden::cross_entropy_both}};
  return all;
}

TEST(CrossEntropy, EqualsPyTorch) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const at::Tensor weights = each.weighted ? make_weights() : at::Tensor();
    const at::Tensor logits = make_logits().set_requires_grad(true);
    const at::Tensor sum = cross_entropy_sum(logits, make_target(), each.smoothing, weights);
    sum.backward();
    EXPECT_NEAR(sum.item<double>(), each.golden[0], 1e-12);
    EXPECT_NEAR((sum / cross_entropy_normaliser(make_target(), weights)).item<double>(), each.golden[1], 1e-12);
    const at::Tensor grad = logits.grad().flatten();
    for (std::int64_t i = 0; i < grad.numel(); ++i) {
      EXPECT_NEAR(grad[i].item<double>(), each.golden[i + 2], 1e-12);
    }
  }
}

TEST(CrossEntropy, PiecesAddUp) {
  for (const Case& each : cases()) {
    const at::Tensor weights = each.weighted ? make_weights() : at::Tensor();
    const at::Tensor logits = make_logits(), target = make_target();
    double sum = 0, normaliser = 0;
    for (const auto& [first, last] : {std::pair{0, 3}, {3, 3}, {3, 5}}) {  // the second piece is empty
      sum += cross_entropy_sum(logits.slice(0, first, last), target.slice(0, first, last), each.smoothing, weights)
                 .item<double>();
      normaliser += cross_entropy_normaliser(target.slice(0, first, last), weights).item<double>();
    }
    EXPECT_NEAR(sum, each.golden[0], 1e-12) << each.name;
    EXPECT_NEAR(sum / normaliser, each.golden[1], 1e-12) << each.name;
  }
}

TEST(CrossEntropy, SumsHalfLogitsInFloat32) {
  for (const at::ScalarType half : {at::kHalf, at::kBFloat16}) {
    const at::Tensor logits = make_logits().to(half);
    const at::Tensor sum = cross_entropy_sum(logits, make_target(), 0.1, make_weights());
    EXPECT_EQ(sum.scalar_type(), at::kFloat);
    const at::Tensor exact = cross_entropy_sum(logits.to(at::kDouble), make_target(), 0.1, make_weights());
    EXPECT_NEAR(sum.item<double>(), exact.item<double>(), 1e-5);
  }
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const at::Tensor logits = make_logits(), target = make_target();
  EXPECT_THROW((void)cross_entropy_sum(logits, target.to(at::kInt)), DataError);
  EXPECT_THROW((void)cross_entropy_sum(logits.slice(0, 0, 4), target), DataError);
  EXPECT_THROW((void)cross_entropy_sum(logits.to(at::kLong), target), DataError);
  EXPECT_THROW((void)cross_entropy_sum(logits, target, 1.0), ConfigError);
  EXPECT_THROW((void)cross_entropy_sum(logits, target, std::nan("")), ConfigError);
  EXPECT_THROW((void)cross_entropy_sum(logits, target, 0, at::zeros({3})), ConfigError);
}

}  // namespace
}  // namespace stoker::ops

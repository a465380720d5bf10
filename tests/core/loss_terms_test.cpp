// SPDX-License-Identifier: Apache-2.0
// The gradients that backward starts from and the losses that a step reports. Both follow from the definition: sum over
// k of w_k * S_k / N_k.
#include "stoker/core/loss_terms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/core/fused_loss.h"
#include "stoker/core/host_value.h"

namespace stoker::core {
namespace {

LossTerms make_terms(at::ScalarType dtype, bool learns = true) {
  const auto sum = [&](double value) { return at::full({}, value, dtype).set_requires_grad(learns); };
  return {{"a", 1, sum(6)}, {"b", 0.25, sum(10)}, {"uncounted", 3, sum(7)}};
}

// float32 and float64 sums are weighted on the host, float16 sums by operators. On a GPU a kernel weights float32 sums,
// and operators weight the others.
TEST(LossTerms, BackwardStartsFromWeightOverNormaliser) {
  const at::Tensor normalisers = at::tensor({4.0, 5.0, 0.0}, at::kDouble);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    for (const auto& [scale, as_on_a_gpu] : {std::pair{1.0, false}, {1024.0, false}, {1.0, true}, {1024.0, true}}) {
      std::optional<OperatorsOnly> kernels;
      if (as_on_a_gpu) {
        kernels.emplace(/*but_kernels=*/true);
      }
      int launched = 0;
      const LossTerms terms = make_terms(dtype);
      const NormalisedLoss loss = normalise(
          terms, normalisers, scale == 1 ? at::Tensor() : at::full({}, scale, at::kFloat), [&](const LossWork& work) {
            divide_terms(work);
            ++launched;
          });
      EXPECT_EQ(launched, as_on_a_gpu && dtype == at::kFloat ? 1 : 0);
      ASSERT_EQ(loss.sums.size(), 3U);
      const double expected[] = {0.25 * scale, 0.05 * scale, 0};
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_TRUE(loss.sums[k].is_same(terms[k].sum));
        EXPECT_EQ(loss.gradients[k].scalar_type(), dtype);
        EXPECT_EQ(loss.gradients[k].dim(), 0);
        EXPECT_NEAR(loss.gradients[k].item<double>(), expected[k], 1e-3 * expected[k]) << k;
      }
      EXPECT_EQ(loss.parts.scalar_type(), at::kDouble);
      EXPECT_FALSE(loss.parts.requires_grad());
      EXPECT_TRUE(loss.parts.allclose(at::tensor({1.5, 0.5, 0.0}, at::kDouble))) << loss.parts;
    }
  }
}

// 65504 is float16's largest number: the scale must be divided by the normaliser before it is rounded.
TEST(LossTerms, AScaleThatHalfCannotHoldIsDividedFirst) {
  LossTerms terms = {{"a", 1, at::full({}, 6, at::kHalf).set_requires_grad(true)}};
  const NormalisedLoss loss = normalise(terms, at::full({1}, 128, at::kDouble), at::full({}, 131072, at::kFloat));
  EXPECT_EQ(loss.gradients[0].item<double>(), 1024);
}

TEST(LossTerms, AnUncountedTermIsZeroWhateverItsSum) {
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    LossTerms terms = {{"a", 1, at::full({}, std::numeric_limits<double>::infinity(), dtype)}};
    EXPECT_EQ(normalise(terms, at::full({1}, 0, at::kDouble)).parts.item<double>(), 0);
  }
}

TEST(LossTerms, ATermWithoutParametersIsNotARootOfBackward) {
  LossTerms terms = make_terms(at::kFloat);
  terms[0].sum = at::full({}, 6.0F);
  const NormalisedLoss loss = normalise(terms, at::full({3}, 2, at::kDouble));
  EXPECT_EQ(loss.sums.size(), 2U);
  EXPECT_EQ(loss.parts.numel(), 3);
  EXPECT_EQ(normalise(make_terms(at::kFloat, false), at::full({3}, 2, at::kDouble)).sums.size(), 3U);
}

TEST(LossTerms, EachTermNeedsANormaliser) {
  EXPECT_THROW((void)normalise(make_terms(at::kFloat), at::full({2}, 1, at::kDouble)), ConfigError);
}

}  // namespace
}  // namespace stoker::core

// SPDX-License-Identifier: Apache-2.0
// Attention: both kinds against the published formula, computed number by number, and against each other with
// gradients.
#include "stoker/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "stoker/base/error.h"

namespace stoker::ops {
namespace {

constexpr std::int64_t kRows = 2, kHeads = 3, kQueries = 5, kKeys = 7, kWidth = 4;
constexpr AttentionKind kKinds[] = {AttentionKind::kFused, AttentionKind::kWritten};

at::Tensor wave(at::IntArrayRef shape, double phase) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    count *= size;
  }
  return ((at::arange(count, at::kDouble) * 0.7 + phase).sin() * 2).reshape(shape);
}

at::Tensor make_query(std::int64_t queries = kQueries) { return wave({kRows, kHeads, queries, kWidth}, 0); }
at::Tensor make_key() { return wave({kRows, kHeads, kKeys, kWidth}, 1); }
at::Tensor make_value() { return wave({kRows, kHeads, kKeys, kWidth}, 2); }

// Sample 0 sees 4 keys, sample 1 all of them.
at::Tensor padding_mask() {
  const at::Tensor mask = at::ones({kRows, 1, 1, kKeys}, at::kBool);
  mask.select(0, 0).narrow(2, 4, kKeys - 4).fill_(false);
  return mask;
}

// added: [N, H, T, S], -inf where a key is not seen. In the paper's order, one number at a time.
at::Tensor formula(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& added) {
  at::Tensor result = at::zeros_like(query);
  const auto q = query.accessor<double, 4>(), k = key.accessor<double, 4>(), v = value.accessor<double, 4>();
  const auto mask = added.accessor<double, 4>();
  auto out = result.accessor<double, 4>();
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t t = 0; t < query.size(2); ++t) {
        std::array<double, kKeys> weight{};
        double total = 0;
        for (std::int64_t s = 0; s < kKeys; ++s) {
          double product = 0;
          for (std::int64_t d = 0; d < kWidth; ++d) {
            product += q[n][h][t][d] * k[n][h][s][d];
          }
          weight[s] = std::exp(product / std::sqrt(double{kWidth}) + mask[n][h][t][s]);
          total += weight[s];
        }
        for (std::int64_t s = 0; s < kKeys; ++s) {
          for (std::int64_t d = 0; d < kWidth; ++d) {
            out[n][h][t][d] += weight[s] / total * v[n][h][s][d];
          }
        }
      }
    }
  }
  return result;
}

at::Tensor hidden_as_infinity(const at::Tensor& seen, std::int64_t queries) {
  return at::zeros({kRows, kHeads, queries, kKeys}, at::kDouble).masked_fill(seen.logical_not(), -INFINITY);
}

void expect_close(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LT(((a - b).abs().max() / b.abs().max()).item<double>(), 1e-12) << what;
}

TEST(Attention, IsThePublishedFormula) {
  const at::Tensor causal = at::ones({kKeys, kKeys}, at::kBool).tril();
  for (const AttentionKind kind : kKinds) {
    const std::string name = kind == AttentionKind::kFused ? "fused" : "written";
    const at::Tensor query = make_query(), key = make_key(), value = make_value();
    expect_close(attention(query, key, value, {}, {.kind = kind}),
                 formula(query, key, value, at::zeros({kRows, kHeads, kQueries, kKeys}, at::kDouble)), name);
    expect_close(attention(query, key, value, padding_mask(), {.kind = kind}),
                 formula(query, key, value, hidden_as_infinity(padding_mask(), kQueries)), name + ", padded");
    const at::Tensor added = wave({kRows, kHeads, kQueries, kKeys}, 3);
    expect_close(attention(query, key, value, added, {.kind = kind}), formula(query, key, value, added),
                 name + ", added");
    const at::Tensor square = make_query(kKeys);
    expect_close(attention(square, key, value, {}, {.causal = true, .kind = kind}),
                 formula(square, key, value, hidden_as_infinity(causal, kKeys)), name + ", causal");
  }
}

// The output and the gradients of query, key and value.
std::vector<at::Tensor> all_of(const at::Tensor& mask, const AttentionOptions& options) {
  std::vector<at::Tensor> leaves{make_query(kKeys), make_key(), make_value()};
  for (const at::Tensor& leaf : leaves) {
    leaf.set_requires_grad(true);
  }
  const at::Tensor y = attention(leaves[0], leaves[1], leaves[2], mask, options);
  (y * wave(y.sizes(), 5)).sum().backward();
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(Attention, BothKindsHaveTheSameGradients) {
  const std::pair<at::Tensor, bool> cases[] = {
      {{}, false}, {{}, true}, {padding_mask(), false}, {wave({1, 1, kKeys, kKeys}, 3), false}};
  for (const auto& [mask, causal] : cases) {
    const auto fused = all_of(mask, {.causal = causal, .kind = AttentionKind::kFused});
    const auto written = all_of(mask, {.causal = causal, .kind = AttentionKind::kWritten});
    for (std::size_t i = 0; i < fused.size(); ++i) {
      expect_close(fused[i], written[i], fmt::format("tensor {}, causal {}", i, causal));
    }
  }
}

// A uniform softmax over many keys, and values of ones: each sum is the share that dropout kept, scaled up.
TEST(Attention, DropsWeightsNotValues) {
  constexpr std::int64_t kMany = 20000;
  const at::Tensor query = at::zeros({1, 1, 1, 4}, at::kDouble), key = at::zeros({1, 1, kMany, 4}, at::kDouble);
  const at::Tensor value = at::ones({1, 1, kMany, 4}, at::kDouble);
  for (const AttentionKind kind : kKinds) {
    const at::Tensor y = attention(query, key, value, {}, {.dropout = 0.25, .kind = kind});
    const double kept = y.flatten()[0].item<double>();
    EXPECT_NEAR(kept, 1, 0.03);  // its deviation is 0.004
    EXPECT_NE(kept, 1);
    EXPECT_TRUE(y.eq(kept).all().item<bool>()) << "a weight is dropped for its whole value";
  }
}

TEST(Attention, RefusesWhatHasNoMeaning) {
  const at::Tensor q = make_query(kKeys);
  EXPECT_THROW((void)attention(q, q, q, padding_mask(), {.causal = true}), ConfigError);
  EXPECT_THROW((void)attention(q, q, q, {}, {.dropout = 1}), ConfigError);
  EXPECT_THROW((void)attention(q, q, q, {}, {.dropout = -0.1}), ConfigError);
}

}  // namespace
}  // namespace stoker::ops

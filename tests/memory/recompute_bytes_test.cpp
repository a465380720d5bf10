// SPDX-License-Identifier: Apache-2.0
// Recomputation holds fewer bytes after the forward pass and at the peak, frees what it captured, and its measurement
// tells beforehand how many.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "stoker/device/tensor_bytes.h"
#include "stoker/memory/measure_segments.h"
#include "stoker/memory/recompute.h"
#include "stoker/models/encoder.h"
#include "support/recomputed_pass.h"

namespace stoker::memory {
namespace {

using stoker::testing::NetworkChain;
using stoker::testing::recompute_plan;
using stoker::testing::weighted_sum;

constexpr int kLayers = 8;
constexpr std::int64_t kRows = 4, kTokens = 32, kWidth = 32;
constexpr std::int64_t kHidden = kRows * kTokens * kWidth * 4;  // bytes of what passes between blocks
constexpr std::int64_t kGenerator = 5056;                       // of the state of the CPU's generator

std::unique_ptr<models::Network> encoder() {
  return models::make_encoder({.vocabulary = 16,
                               .context = kTokens,
                               .layers = kLayers,
                               .heads = 2,
                               .width = kWidth,
                               .classes = 2,
                               .dropout = 0.1});
}

core::TensorList tokens() { return {at::arange(kRows * kTokens, at::kLong).remainder(16).reshape({kRows, kTokens})}; }

struct Bytes {
  std::int64_t after_forward = 0, peak = 0, graph_after_backward = 0, after_backward = 0;
};

Bytes bytes_of(const std::string& choice) {
  NetworkChain model(encoder());
  const RecomputePlan plan = recompute_plan(model, choice);
  for (const core::Parameter& each : model.parameters()) {
    at::Tensor(each.tensor).mutable_grad() = at::zeros_like(each.tensor);  // not counted
  }
  Bytes result;
  const device::TensorBytes bytes(c10::kCPU);
  {
    core::TensorList outputs = plan.forward(model, tokens());
    result.after_forward = bytes.held();
    const at::Tensor loss = weighted_sum(outputs);
    loss.backward({}, /*retain_graph=*/true);
    result.peak = bytes.peak();
    result.graph_after_backward = bytes.held();
  }
  result.after_backward = bytes.held();
  return result;
}

TEST(RecomputeBytes, FallAfterForwardAndAtThePeak) {
  const Bytes plain = bytes_of("none"), all = bytes_of("all"), half = bytes_of("every:2"),
              parts = bytes_of("attention,mlp.gelu");
  EXPECT_LE(all.after_forward, (kLayers + 1) * kHidden + (kLayers + 2) * (kGenerator + 2048))
      << "the inputs of the segments";
  EXPECT_LT(all.after_forward, 0.1 * static_cast<double>(plain.after_forward));
  EXPECT_LT(all.peak, 0.3 * static_cast<double>(plain.peak));
  EXPECT_LT(half.after_forward, 0.6 * static_cast<double>(plain.after_forward));
  EXPECT_LT(parts.after_forward, 0.5 * static_cast<double>(plain.after_forward));
  EXPECT_LT(parts.peak, half.peak);
  EXPECT_LE(all.graph_after_backward, all.after_forward + 4096) << "captured tensors stay with a graph that is kept";
  std::string nested = "attention,mlp";
  for (int layer = 0; layer < kLayers; ++layer) {
    nested += fmt::format(",layer{}", layer);
  }
  EXPECT_LE(bytes_of(nested).after_forward, all.after_forward + 2 * kLayers * kGenerator + 2 * kHidden)
      << "parts inside of a segment hold its tensors";
  for (const Bytes& each : {plain, all, half, parts}) {
    EXPECT_EQ(each.after_backward, 0) << "captured tensors stay";
  }
}

TEST(RecomputeBytes, AreMeasuredForEachSegmentAndPart) {
  NetworkChain model(encoder());
  const std::vector<SegmentCost> costs = measure_segments(model, tokens());
  ASSERT_EQ(costs.size(), kLayers + 2);
  const Bytes plain = bytes_of("none"), one = bytes_of("layer3"), gelu = bytes_of("layer3/mlp.gelu");
  const SegmentCost& layer = costs[4];
  EXPECT_EQ(layer.name, "layer3");
  // Less than half of the hidden values: what is saved of each row, such as the norms' means, and rounding of blocks.
  EXPECT_NEAR(static_cast<double>(layer.saved_bytes), static_cast<double>(plain.after_forward - one.after_forward),
              0.5 * kHidden);
  EXPECT_EQ(layer.output_bytes, kHidden);
  EXPECT_GT(layer.seconds, 0);
  ASSERT_EQ(layer.parts.size(), 6);
  EXPECT_EQ(layer.parts[4].name, "mlp.gelu");
  EXPECT_NEAR(static_cast<double>(layer.parts[4].saved_bytes),
              static_cast<double>(plain.after_forward - gelu.after_forward + kGenerator), 0.1 * kHidden);
  EXPECT_EQ(layer.parts[4].saved_bytes, 4 * kHidden) << "the output of GELU";
  EXPECT_FALSE(model.parameters()[0].tensor.grad().defined());
}

}  // namespace
}  // namespace stoker::memory

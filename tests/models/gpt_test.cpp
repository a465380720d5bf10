// SPDX-License-Identifier: Apache-2.0
// GPT-2's network: its published names, its properties, and a plain slow twin. tests/house/interchange_test.py compares
// it with transformers' own.
#include "stoker/models/gpt.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "stoker/base/error.h"
#include "stoker/ops/cross_entropy.h"

namespace stoker::models {
namespace {

using ::testing::HasSubstr;

GptOptions small() {
  GptOptions options;
  options.vocabulary = 13, options.context = 9, options.layers = 2, options.heads = 2, options.width = 8;
  options.seed = 5;
  return options;
}

std::map<std::string, at::Tensor> weights_of(const Network& network) {
  std::map<std::string, at::Tensor> weights;
  for (const core::Parameter& parameter : network.parameters()) {
    weights[parameter.name] = parameter.tensor.detach();
  }
  return weights;
}

// Weights large enough that a mistake in any of them shows.
std::unique_ptr<Network> make_with_large_weights(const GptOptions& options) {
  const at::NoGradGuard no_grad;
  auto network = make_gpt(options);
  network->to(at::kCPU, at::kDouble);
  double phase = 0;
  for (const core::Parameter& parameter : network->parameters()) {
    const at::Tensor values = (at::arange(parameter.tensor.numel(), at::kDouble) * 1.7 + ++phase).sin();
    parameter.tensor.detach().copy_(values.reshape(parameter.tensor.sizes()) * 0.5);
  }
  return network;
}

at::Tensor some_tokens(std::int64_t rows = 2, std::int64_t tokens = 7) {
  return (at::arange(rows * tokens, at::kLong) * 5).remainder(13).reshape({rows, tokens});
}

at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * weight + bias;
}

// The same computation written with products and sums, head by head.
at::Tensor twin(const std::map<std::string, at::Tensor>& w, const at::Tensor& tokens, int layers, std::int64_t heads) {
  const std::int64_t count = tokens.size(1), width = w.at("wte.weight").size(1), each = width / heads;
  at::Tensor x = w.at("wte.weight").index_select(0, tokens.flatten()).view({tokens.size(0), count, width}) +
                 w.at("wpe.weight").slice(0, 0, count);
  const at::Tensor future = at::ones({count, count}, at::kDouble).triu(1).to(at::kBool);
  for (int layer = 0; layer < layers; ++layer) {
    const auto p = [&](const char* name) { return w.at("h." + std::to_string(layer) + "." + name); };
    const at::Tensor qkv =
        normalised(x, p("ln_1.weight"), p("ln_1.bias")).matmul(p("attn.c_attn.weight")) + p("attn.c_attn.bias");
    at::Tensor attended = at::full({tokens.size(0), count, width}, 0.0, at::kDouble);
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto part = [&](std::int64_t which) { return qkv.narrow(2, which * width + head * each, each); };
      const at::Tensor scores = (part(0).matmul(part(1).transpose(1, 2)) / std::sqrt(static_cast<double>(each)))
                                    .masked_fill(future, -std::numeric_limits<double>::infinity());
      attended.narrow(2, head * each, each).copy_(scores.softmax(-1).matmul(part(2)));
    }
    x = x + attended.matmul(p("attn.c_proj.weight")) + p("attn.c_proj.bias");
    const at::Tensor up =
        normalised(x, p("ln_2.weight"), p("ln_2.bias")).matmul(p("mlp.c_fc.weight")) + p("mlp.c_fc.bias");
    const at::Tensor gelu = up * 0.5 * (1 + at::tanh(std::sqrt(2 / std::numbers::pi) * (up + 0.044715 * up * up * up)));
    x = x + gelu.matmul(p("mlp.c_proj.weight")) + p("mlp.c_proj.bias");
  }
  return normalised(x, w.at("ln_f.weight"), w.at("ln_f.bias")).matmul(w.at("wte.weight").t());
}

TEST(Gpt, EqualsItsTwin) {
  const at::NoGradGuard no_grad;
  for (const ops::AttentionKind attention : {ops::AttentionKind::kFused, ops::AttentionKind::kWritten}) {
    GptOptions options = small();
    options.attention = attention;
    const auto network = make_with_large_weights(options);
    const at::Tensor logits = network->forward(some_tokens());
    const at::Tensor expected = twin(weights_of(*network), some_tokens(), 2, 2);
    ASSERT_EQ(logits.sizes(), expected.sizes());
    EXPECT_LT(((logits - expected).abs().max() / expected.abs().max()).item<double>(), 1e-12);
  }
}

TEST(Gpt, HasTheNamesAndShapesOfThePublishedWeights) {
  GptOptions options;  // the smallest GPT-2's
  options.vocabulary = 50257, options.context = 1024, options.layers = 12, options.heads = 12, options.width = 768;
  const auto network = make_gpt(options);
  EXPECT_EQ(core::parameter_count(network->parameters()), 124'439'808);  // as transformers counts gpt2's
  const auto weights = weights_of(*network);
  EXPECT_EQ(weights.at("h.11.attn.c_attn.weight").sizes(), (std::vector<std::int64_t>{768, 2304}));
  EXPECT_EQ(weights.at("h.0.mlp.c_proj.weight").sizes(), (std::vector<std::int64_t>{3072, 768}));
  EXPECT_EQ(weights.at("wpe.weight").sizes(), (std::vector<std::int64_t>{1024, 768}));
  EXPECT_NEAR(weights.at("h.3.mlp.c_fc.weight").std().item<double>(), 0.02, 1e-4);
  EXPECT_NEAR(weights.at("h.3.mlp.c_proj.weight").std().item<double>(), 0.02 / std::sqrt(24.0), 1e-4);
}

TEST(Gpt, NoTokenSeesALaterOne) {
  const auto network = make_with_large_weights(small());
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = some_tokens(1), changed = tokens.clone();
  changed.select(1, 4).fill_(12);
  const at::Tensor before = network->forward(tokens), after = network->forward(changed);
  EXPECT_TRUE(before.slice(1, 0, 4).equal(after.slice(1, 0, 4)));
  EXPECT_FALSE(before.select(1, 6).equal(after.select(1, 6)));
}

TEST(Gpt, AnOpenHeadLeavesTheProductToTheLoss) {
  GptOptions options = small();
  const auto closed = make_with_large_weights(options);
  options.open_head = true;
  const auto open = make_with_large_weights(options);
  const at::NoGradGuard no_grad;
  core::TensorList values{some_tokens()};
  for (int segment = 0; segment < open->segments(); ++segment) {
    values = open->forward_segment(segment, std::move(values));
  }
  ASSERT_EQ(values.size(), 2U);
  EXPECT_LT((values[0].matmul(values[1].t()) - closed->forward(some_tokens())).abs().max().item<double>(), 1e-12);
}

TEST(Gpt, StartsAsIfItKnewNothing) {
  const auto network = make_gpt(small());
  const at::Tensor logits = network->forward(some_tokens()).flatten(0, 1);
  const at::Tensor target = (some_tokens().flatten() + 6).remainder(13);  // at first each token predicts itself
  EXPECT_NEAR(ops::cross_entropy_sum(logits, target).item<double>() / 14, std::log(13.0), 0.05);
}

TEST(Gpt, ReadsPublishedFiles) {
  const auto source = make_with_large_weights(small());
  std::map<std::string, at::Tensor> file;
  for (const auto& [name, tensor] : weights_of(*source)) {
    file["transformer." + name] = tensor;
  }
  file["lm_head.weight"] = file.at("transformer.wte.weight");
  file["transformer.h.0.attn.bias"] = at::ones({1, 1, 9, 9});
  file["transformer.h.0.attn.masked_bias"] = at::ones({});
  const auto network = make_gpt(small());
  const LoadReport report = network->load(file);
  EXPECT_TRUE(report.exact()) << report.text();
  const at::NoGradGuard no_grad;
  EXPECT_LT((network->forward(some_tokens()) - source->forward(some_tokens())).abs().max().item<double>(), 1e-3);
  file["transformer.h.0.attn.c_attn.weight"] = file.at("transformer.h.0.attn.c_attn.weight").t().contiguous();
  EXPECT_THAT(make_gpt(small())->load(file).text(), HasSubstr("with a different shape (h.0.attn.c_attn.weight"));
}

TEST(Gpt, RefusesWhatMakesNoNetwork) {
  GptOptions options = small();
  options.heads = 3;
  EXPECT_THROW((void)make_gpt(options), ConfigError);
  options = small();
  options.layers = 0;
  EXPECT_THROW((void)make_gpt(options), ConfigError);
  EXPECT_THROW((void)make_gpt(small())->forward(some_tokens(1, 10)), DataError);
}

}  // namespace
}  // namespace stoker::models

// SPDX-License-Identifier: Apache-2.0
// The encoder against transformers' BERT, and properties of every encoder: padding has no effect, and published files
// can be loaded.
#include "stoker/models/encoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "golden/encoder.h"
#include "stoker/base/error.h"
#include "stoker/ops/cross_entropy.h"
#include "support/golden_network.h"

namespace stoker::models {
namespace {

EncoderOptions small(int classes = 0) {
  EncoderOptions options;
  options.vocabulary = 13, options.context = 9, options.layers = 2, options.heads = 2, options.width = 8;
  options.inner = 20, options.classes = classes, options.seed = 5;
  return options;
}

at::Tensor some_tokens() { return (at::arange(2 * 7, at::kLong) * 5).remainder(13).reshape({2, 7}); }

// Row 1 ends after 5 tokens.
at::Tensor some_seen() {
  const at::Tensor seen = at::ones({2, 7}, at::kLong);
  seen.select(0, 1).slice(0, 5).fill_(0);
  return seen;
}

at::Tensor some_types() {
  const at::Tensor types = at::zeros({2, 7}, at::kLong);
  types.slice(1, 4).fill_(1);
  return types;
}

at::Tensor run(const Network& network, core::TensorList values) {
  for (int segment = 0; segment < network.segments(); ++segment) {
    values = network.forward_segment(segment, std::move(values));
  }
  return values.at(0);
}

std::unique_ptr<Network> make_golden(const EncoderOptions& options) {
  auto network = make_encoder(options);
  fill_from_golden(*network, options.classes > 0 ? golden::encoder_rows_state : golden::encoder_tokens_state);
  return network;
}

double difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(Encoder, EqualsTransformersBert) {
  struct Golden {
    int classes;
    const GoldenState& state;
    const std::vector<double>&plain, &padded, &gradients;
  };
  const Golden goldens[] = {{0, golden::encoder_tokens_state, golden::encoder_tokens_plain,
                             golden::encoder_tokens_padded, golden::encoder_tokens_gradients},
                            {3, golden::encoder_rows_state, golden::encoder_rows_plain, golden::encoder_rows_padded,
                             golden::encoder_rows_gradients}};
  for (const Golden& each : goldens) {
    for (const ops::AttentionKind attention : {ops::AttentionKind::kFused, ops::AttentionKind::kWritten}) {
      SCOPED_TRACE(fmt::format("{} classes, attention {}", each.classes, static_cast<int>(attention)));
      EncoderOptions options = small(each.classes);
      options.attention = attention;
      const auto network = make_golden(options);
      expect_golden(network->forward(some_tokens()).flatten().slice(0, 0, {}, 5), each.plain, 1e-12);
      const at::Tensor logits = run(*network, {some_tokens(), some_seen(), some_types()});
      expect_golden(logits, each.padded, 1e-12);
      (logits * wave(logits.sizes())).sum().backward();
      expect_golden_gradients(*network, each.state, each.gradients, 1e-11);
    }
  }
}

TEST(Encoder, HasThePublishedSizes) {
  EncoderOptions options;  // bert-base-uncased
  options.vocabulary = 30522, options.context = 512, options.layers = 12, options.heads = 12, options.width = 768;
  const auto network = make_encoder(options);
  EXPECT_EQ(core::parameter_count(network->parameters()), 109'514'298);  // as transformers counts its BertForMaskedLM
  EXPECT_EQ(network->segments(), 14);
}

TEST(Encoder, WhatStandsAtAPaddedPlaceSaysNothing) {
  const at::NoGradGuard no_grad;
  for (const int classes : {0, 3}) {
    const auto network = make_golden(small(classes));
    const at::Tensor tokens = some_tokens(), other = tokens.clone();
    other.select(0, 1).slice(0, 5).fill_(12);
    const at::Tensor before = run(*network, {tokens, some_seen()}), after = run(*network, {other, some_seen()});
    const auto seen_logits = [&](const at::Tensor& logits) {
      return classes > 0 ? logits : at::cat({logits[0], logits[1].slice(0, 0, 5)});
    };
    EXPECT_TRUE(seen_logits(before).equal(seen_logits(after)));
    EXPECT_GT(difference(run(*network, {tokens}), run(*network, {other})), 1e-3)
        << "without the mask the token has an effect";
    // A padded row gives the same result as alone and unpadded.
    const at::Tensor alone = run(*network, {tokens.slice(0, 1, 2).slice(1, 0, 5)})[0];
    EXPECT_LT(difference(classes > 0 ? before[1] : before[1].slice(0, 0, 5), alone), 1e-12);
    EXPECT_TRUE(run(*network, {tokens, some_seen().to(at::kBool)}).equal(before));
  }
}

TEST(Encoder, TokensSeeBothWays) {
  const at::NoGradGuard no_grad;
  const auto network = make_golden(small());
  const at::Tensor tokens = some_tokens(), other = tokens.clone();
  other.select(1, 3).fill_(12);
  const at::Tensor moved = (network->forward(tokens) - network->forward(other)).abs().amax({0, 2});
  EXPECT_GT(moved.min().item<double>(), 1e-6);  // both those before it and those after it
}

TEST(Encoder, ReadsPublishedFiles) {
  const at::NoGradGuard no_grad;
  const auto source = make_golden(small());
  std::map<std::string, at::Tensor> file;
  for (const core::Parameter& parameter : source->parameters()) {
    std::string name = parameter.name;
    if (const auto at = name.find("LayerNorm."); at != std::string::npos) {
      name = name.substr(0, at) + (name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
    }
    file[name.starts_with("bert.encoder.") ? name.substr(5) : name] = parameter.tensor.detach();
  }
  file["cls.predictions.decoder.weight"] = file.at("bert.embeddings.word_embeddings.weight");
  file["cls.predictions.decoder.bias"] = file.at("cls.predictions.bias");
  file["cls.seq_relationship.weight"] = at::ones({2, 8});
  file["bert.pooler.dense.weight"] = at::ones({8, 8});
  file["bert.embeddings.position_ids"] = at::arange(9, at::kLong).unsqueeze(0);
  const auto network = make_encoder(small());
  const LoadReport report = network->load(file);
  EXPECT_TRUE(report.exact()) << report.text();
  EXPECT_LT(difference(network->forward(some_tokens()), source->forward(some_tokens())), 1e-4);
  // The same file for a classifier: only its head and the missing part of the pooler are not loaded.
  const LoadReport tuned = make_encoder(small(3))->load(file);
  EXPECT_TRUE(tuned.new_head && tuned.foreign.empty());
  EXPECT_THAT(tuned.missing, ::testing::ElementsAre("bert.pooler.dense.bias", "classifier.weight", "classifier.bias"));
}

TEST(Encoder, StartsAsIfItKnewNothingAndDropsInTrainingAlone) {
  const at::NoGradGuard no_grad;
  EncoderOptions options = small();
  options.dropout = 0.5;
  const auto network = make_encoder(options);
  EXPECT_FALSE(network->forward(some_tokens()).equal(network->forward(some_tokens())));
  network->set_training(false);
  const at::Tensor logits = network->forward(some_tokens());
  EXPECT_TRUE(logits.equal(network->forward(some_tokens())));
  const at::Tensor target = (some_tokens().flatten() + 6).remainder(13);
  EXPECT_NEAR(ops::cross_entropy_sum(logits.flatten(0, 1), target).item<double>() / 14, std::log(13.0), 0.05);
}

TEST(Encoder, CountsItsOperations) {
  // By hand: two blocks of 4 * 8 * 8 + 2 * 8 * 20 weights, attention's two products of 9 x 9 x 8, and the head.
  constexpr std::int64_t kBlocks = 2 * (9 * 2 * (4 * 64 + 2 * 160) + 2 * 2 * 9 * 9 * 8);
  EXPECT_EQ(encoder_flops(small()), kBlocks + 2 * 9 * (64 + 8 * 13));
  EXPECT_EQ(encoder_flops(small(3)), kBlocks + 2 * (64 + 8 * 3));
}

TEST(Encoder, RefusesWhatMakesNoNetwork) {
  for (const auto& spoil : {+[](EncoderOptions& o) { o.heads = 3; }, +[](EncoderOptions& o) { o.layers = 0; },
                            +[](EncoderOptions& o) { o.types = 0; }, +[](EncoderOptions& o) { o.classes = -1; }}) {
    EncoderOptions options = small();
    spoil(options);
    EXPECT_THROW((void)make_encoder(options), ConfigError);
  }
  const auto network = make_encoder(small());
  EXPECT_THROW((void)network->forward(at::zeros({1, 10}, at::kLong)), DataError);
  EXPECT_THROW((void)network->forward(at::zeros({1, 5})), DataError);
  EXPECT_THROW((void)run(*network, {some_tokens(), at::ones({2, 6})}), DataError);
  EXPECT_THROW((void)run(*network, {some_tokens(), {}, at::zeros({1, 7}, at::kLong)}), DataError);
}

}  // namespace
}  // namespace stoker::models

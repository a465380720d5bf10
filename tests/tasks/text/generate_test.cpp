// SPDX-License-Identifier: Apache-2.0
// Tokens are chosen by their probabilities, and equal seeds give equal texts.
#include "stoker/tasks/text/generate.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/models/gpt.h"

namespace stoker::tasks {
namespace {

TEST(ChooseToken, FollowsTheProbabilities) {
  const at::Tensor logits = at::tensor({1.0F, 3.0F, 2.0F, 0.0F});
  constexpr int kDraws = 20'000;
  for (const auto& [temperature, top_k] : {std::pair{1.0, 0}, {2.0, 0}, {0.5, 2}, {1.0, 3}}) {
    std::vector<double> expected(4, 0), counts(4, 0);
    double sum = 0;
    for (const std::size_t i : {1, 2, 0, 3}) {
      const bool kept = top_k == 0 || (i == 1) || (i == 2) || (i == 0 && top_k == 3);
      expected[i] = kept ? std::exp(logits[static_cast<std::int64_t>(i)].item<double>() / temperature) : 0;
      sum += expected[i];
    }
    for (int i = 0; i < kDraws; ++i) {
      ++counts[static_cast<std::size_t>(choose_token(logits, temperature, top_k, (i + 0.5) / kDraws))];
    }
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(counts[i] / kDraws, expected[i] / sum, 2.0 / kDraws) << temperature << " " << top_k << " " << i;
    }
  }
}

TEST(ChooseToken, WithoutTemperatureTheLargest) {
  EXPECT_EQ(choose_token(at::tensor({1.0F, 5.0F, 5.0F}), 0, 0, 0.99), 1);
  EXPECT_EQ(choose_token(at::tensor({1.0F, 4.0F, 5.0F}), 1, 1, 0.99), 2);
}

class Generate : public ::testing::Test {
 protected:
  TextModel make(std::int64_t chunk) {
    models::GptOptions network;
    network.vocabulary = 256, network.context = 8, network.layers = 1, network.heads = 2, network.width = 8;
    network.open_head = chunk > 0;
    TextModel model(models::make_gpt(network), {chunk, {}});
    model.set_training(false);
    return model;
  }
  std::string text_of(TextModel& model, const GenerateRequest& request) {
    std::string text;
    generate(model, *tokenizer_, 8, request, [&](std::string_view piece) {
      text += piece;
      return true;
    });
    return text;
  }
  std::unique_ptr<data::Tokenizer> tokenizer_ = data::byte_tokenizer();
};

TEST_F(Generate, EqualSeedsGiveEqualTextsWhateverTheHead) {
  TextModel plain = make(0), open = make(4);
  GenerateRequest request;
  request.prompt = "longer than the context";
  request.tokens = 50;
  const std::string text = text_of(plain, request);
  EXPECT_EQ(text.size(), 50U);
  EXPECT_EQ(text_of(plain, request), text);
  EXPECT_EQ(text_of(open, request), text);
  request.sample = 1;
  EXPECT_NE(text_of(plain, request), text);
  request.sample = 0, request.seed = 2;
  EXPECT_NE(text_of(plain, request), text);
}

TEST_F(Generate, EndsWhenItsReaderHasEnough) {
  TextModel model = make(0);
  int pieces = 0;
  generate(model, *tokenizer_, 8, {}, [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(pieces, 3);
}

// Like a tokenizer.json that drops white space.
class Silent final : public data::Tokenizer {
 public:
  std::int64_t size() const override { return 256; }
  std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
  std::string decode(std::span<const std::int32_t>) const override { return "."; }
  std::string describe() const override { return "silent"; }
  nlohmann::json to_json() const override { return {}; }
};

TEST_F(Generate, APromptWithoutTokensBeginsLikeNone) {
  tokenizer_ = std::make_unique<Silent>();
  TextModel model = make(0);
  GenerateRequest request;
  request.tokens = 3;
  EXPECT_EQ(text_of(model, request), "...");
}

TEST_F(Generate, APromptThatCannotBeReadIsRefused) {
  tokenizer_ = data::character_tokenizer("abc");
  TextModel model = make(0);
  GenerateRequest request;
  request.prompt = "abd";
  EXPECT_THROW((void)text_of(model, request), DataError);
}

}  // namespace
}  // namespace stoker::tasks

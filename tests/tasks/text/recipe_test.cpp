// SPDX-License-Identifier: Apache-2.0
// The language-model task's defaults: all settings have one, and they follow text, vocabulary, device and weights.
#include "stoker/tasks/text/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/default_values.h"

namespace stoker::tasks {
namespace {

TextFacts facts_of(const std::string& model, bool cuda, std::int64_t vocabulary) {
  TextFacts facts;
  facts.model = model;
  facts.tokenizer = "bytes";
  facts.network = text_network(with_defaults(model, cuda, {}));
  facts.network.vocabulary = vocabulary;
  facts.train_windows = 15'000;
  facts.cuda = cuda;
  return facts;
}

core::PlanRow row(const TextFacts& facts, std::string_view key) {
  const auto rows = text_recipe(facts);
  const auto found = std::ranges::find(rows, key, &core::PlanRow::key);
  return found == rows.end() ? core::PlanRow{"", "none", core::Origin::kDefault, "none"} : *found;
}

std::string value(const TextFacts& facts, std::string_view key) { return row(facts, key).value; }

TEST(TextRecipe, EveryOptionHasADefault) {
  const std::vector<core::PlanRow> rows = text_recipe(facts_of("", false, 65));
  const TextTaskOptions options = text_options().parse(
      stoker::testing::default_values(text_options().options(), rows));  // throws for a missing one
  EXPECT_EQ(options.tokenizer, "bytes");
  EXPECT_EQ(options.context, 64);
  EXPECT_TRUE(options.shuffle);
}

TEST(TextRecipe, SizesFollowModelAndDevice) {
  EXPECT_EQ(value(facts_of("", false, 65), "context"), "64");
  EXPECT_EQ(value(facts_of("", true, 65), "width"), "384");
  EXPECT_EQ(value(facts_of("gpt2", false, 50257), "layers"), "12");
  EXPECT_EQ(with_defaults("gpt2", false, {{"context", "128"}}).context, 128);
}

TEST(TextRecipe, LargeLogitsComeInPieces) {
  EXPECT_EQ(value(facts_of("", false, 50257), "loss_chunk"), "0");  // 12 * 64 rows of 201 kB
  const std::int64_t rows = std::stoll(value(facts_of("gpt2", false, 50257), "loss_chunk"));
  EXPECT_GT(rows, 0);
  EXPECT_LE(rows * 50257 * 4, 64 << 20);
}

TEST(TextRecipe, AShortTextHasASmallerBatchAndMoreEpochs) {
  TextFacts facts = facts_of("", false, 65);
  EXPECT_EQ(value(facts, "epochs"), "2");  // 1,250 steps each
  facts.train_windows = 5;
  EXPECT_EQ(value(facts, "batch"), "5");
  EXPECT_EQ(value(facts, "epochs"), "1000");
}

TEST(TextRecipe, EvaluationsTakeATenthOfTheRunAtMost) {
  TextFacts facts = facts_of("", false, 65);
  facts.val_windows = 1'743;  // tinyshakespeare's: 145 batches, forward a third of a step
  EXPECT_EQ(value(facts, "eval_every"), "500");
  facts.val_windows = 156'000;
  EXPECT_GE(std::stoll(value(facts, "eval_every")), 10 * 156'000 / 12 / 3);
  facts.batch = 120;  // asked for: the others follow it
  EXPECT_LE(std::stoll(value(facts, "eval_every")), 10 * 156'000 / 120 / 3 + 101);
  EXPECT_EQ(value(facts, "epochs"), "16");  // 125 steps each
}

TEST(TextRecipe, GivenWeightsWantSmallSteps) {
  TextFacts facts = facts_of("gpt2", false, 50257);
  const double scratch = std::stod(value(facts, "lr"));
  facts.weights = true;
  EXPECT_LT(std::stod(value(facts, "lr")), scratch / 5);
}

TEST(TextRecipe, SgdHasValuesAndReasonsOfItsOwn) {
  TextFacts facts = facts_of("", false, 65);
  const core::PlanRow adamw_lr = row(facts, "lr"), adamw_decay = row(facts, "weight_decay");
  facts.optimizer = "sgd";
  for (const bool weights : {false, true}) {
    facts.weights = weights;
    EXPECT_NE(row(facts, "weight_decay").value, adamw_decay.value);
    EXPECT_NE(row(facts, "weight_decay").reason, adamw_decay.reason);
    EXPECT_NE(row(facts, "lr").reason, adamw_lr.reason);
  }
  EXPECT_EQ(row(facts, "lr").reason, "small steps for fine-tuning");
  const double tuned = std::stod(value(facts, "lr"));
  facts.weights = false;
  EXPECT_LT(tuned, std::stod(value(facts, "lr")) / 5);
  EXPECT_NE(row(facts, "lr").reason, "small steps for fine-tuning");
}

TEST(TextRecipe, SamplesOfLargeNetworksAreShort) {
  EXPECT_EQ(value(facts_of("", false, 65), "sample_tokens"), "300");
  EXPECT_EQ(value(facts_of("gpt2", false, 50257), "sample_tokens"), "20");
}

}  // namespace
}  // namespace stoker::tasks

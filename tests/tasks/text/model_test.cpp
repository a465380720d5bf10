// SPDX-License-Identifier: Apache-2.0
// The language model's loss and figures against their definitions, whole and in pieces.
#include "stoker/tasks/text/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stoker/models/gpt.h"

namespace stoker::tasks {
namespace {

std::unique_ptr<TextModel> make(std::int64_t chunk) {
  models::GptOptions network;
  network.vocabulary = 5, network.context = 4, network.layers = 1, network.heads = 1, network.width = 4;
  network.open_head = chunk > 0;
  auto model = std::make_unique<TextModel>(models::make_gpt(network),
                                           TextModelOptions{chunk, at::tensor({1.0, 2.0, 3.0, 4.0, 5.0}, at::kDouble)});
  model->network().to(at::kCPU, at::kDouble);
  return model;
}

// Two windows, the second with one target that counts.
core::Batch some_batch() {
  core::Batch batch({}, {0, 1});
  batch.set("ids", at::tensor({0, 1, 2, 3, 4, 0, 0, 0}, at::kLong).reshape({2, 4}));
  batch.set("target", at::tensor({1, 2, 3, 4, 2, -100, -100, -100}, at::kLong).reshape({2, 4}));
  return batch;
}

double by_hand(TextModel& model, const core::Batch& batch) {
  const at::Tensor logs = model.forward(model.inputs(batch)).front().log_softmax(-1).reshape({8, 5});
  const at::Tensor target = batch["target"].flatten();
  double sum = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    if (const auto wanted = target[i].item<std::int64_t>(); wanted >= 0) {
      sum -= logs[i][wanted].item<double>();
    }
  }
  return sum;
}

TEST(TextModel, LossIsTheMeanOverTheTokensThatCount) {
  const auto plain = make(0), pieces = make(3);
  const core::Batch batch = some_batch();
  const double expected = by_hand(*plain, batch);
  EXPECT_EQ(plain->normalisers(batch).item<double>(), 5);
  EXPECT_NEAR(plain->loss(plain->forward(plain->inputs(batch)), batch).front().sum.item<double>(), expected, 1e-12);
  EXPECT_NEAR(pieces->loss(pieces->forward(pieces->inputs(batch)), batch).front().sum.item<double>(), expected, 1e-12);
}

TEST(TextModel, FiguresFollowFromTheLoss) {
  for (const std::int64_t chunk : {0, 3}) {
    const auto model = make(chunk);
    const core::Batch batch = some_batch();
    const auto totals = model->evaluate(model->forward(model->inputs(batch)), batch);
    const auto figures = model->metrics(totals);
    const double loss = by_hand(*make(0), batch) / 5;
    ASSERT_EQ(figures.size(), 3U);
    EXPECT_NEAR(figures[0].value, loss, 1e-12);
    EXPECT_FALSE(figures[0].higher_is_better);
    EXPECT_NEAR(figures[1].value, std::exp(loss), 1e-12);
    EXPECT_NEAR(figures[2].value, loss * 5 / std::log(2.0) / (2 + 3 + 4 + 5 + 3), 1e-12);  // bytes of the targets
  }
}

TEST(TextModel, WhatFollowsTheLastTokenDoesNotDependOnTheHead) {
  const auto plain = make(0), open = make(3);
  const at::Tensor ids = at::tensor({0, 3, 1}, at::kLong).unsqueeze(0);
  const at::Tensor expected = plain->forward({ids}).front()[0][2].to(at::kFloat);
  EXPECT_TRUE(plain->next_logits(ids).equal(expected));
  EXPECT_LT((open->next_logits(ids) - expected).abs().max().item<float>(), 1e-6);
}

}  // namespace
}  // namespace stoker::tasks

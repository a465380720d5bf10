// SPDX-License-Identifier: Apache-2.0
// Both layouts of images and convolutions give the same numbers, and each is kept through the whole network.
#include "stoker/tasks/image/classifier.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "stoker/models/builder.h"

namespace stoker::tasks {
namespace {

// A 3 x 3 and a 1 x 1 convolution; their outputs are kept in `seen`.
std::unique_ptr<models::Network> two_convolutions(int channels, core::TensorList& seen) {
  models::NetworkBuilder builder(1);
  builder.begin_segment("all");
  const models::Conv2d wide = builder.conv("wide", {.in = channels, .out = 4});
  const models::Conv2d narrow = builder.conv("narrow", {.in = 4, .out = 8, .kernel = 1, .padding = 0});
  builder.end_segment([wide, narrow, &seen](const at::Tensor& x) {
    seen = {wide(x)};
    seen.push_back(narrow(seen[0]));
    return seen[1].mean(at::IntArrayRef{2, 3});
  });
  return builder.finish();
}

core::Batch images(int channels) {
  core::Batch batch({0, 0}, {0, 1});
  batch.set("image", at::randint(256, {2, 6, 6, channels}, at::kByte));
  batch.set("target", at::full({2}, 1, at::kLong));
  return batch;
}

class Layouts : public ::testing::TestWithParam<int> {};  // channels of the images

TEST_P(Layouts, GiveTheSameNumbersAndGoAllTheWay) {
  core::TensorList seen;
  ClassifierOptions options;
  options.preprocessing = {.channels = GetParam(), .image_size = 6, .resize = 6, .mean = {0.5}, .std = {0.5}};
  options.preprocessing.mean.resize(GetParam(), 0.5);
  options.preprocessing.std.resize(GetParam(), 0.5);
  ImageClassifier model(two_convolutions(GetParam(), seen), options);
  const core::Batch batch = images(GetParam());
  const at::Tensor expected = model.forward(model.inputs(batch)).front().detach().clone();
  const auto is = [](const at::Tensor& tensor, at::MemoryFormat format) {
    return tensor.suggest_memory_format() == format && tensor.is_contiguous(format);
  };
  for (const auto format :
       {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    EXPECT_TRUE(model.set_channels_last(format == at::MemoryFormat::ChannelsLast));
    const core::TensorList inputs = model.inputs(batch);
    EXPECT_TRUE(is(inputs.front(), format));
    EXPECT_TRUE(at::allclose(model.forward(inputs).front(), expected, 1e-5, 1e-6));
    for (const at::Tensor& each : seen) {
      EXPECT_TRUE(is(each, format));
    }
    for (const core::Parameter& each : model.parameters()) {
      EXPECT_TRUE(is(each.tensor, format)) << each.name;
      EXPECT_TRUE(each.tensor.requires_grad());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GreyAndColour, Layouts, ::testing::Values(1, 3));

// A batch with shares: the loss and its normaliser use both targets, also in pieces.
TEST(ImageClassifier, MixedBatchesLearnFromBothTargets) {
  core::TensorList seen;
  ClassifierOptions options;
  options.preprocessing = {.channels = 1, .image_size = 6, .resize = 6, .mean = {0.5}, .std = {0.5}};
  options.class_weights = at::tensor({1, 2, 3, 4, 5, 6, 7, 8}, at::kDouble);
  ImageClassifier model(two_convolutions(1, seen), options);
  core::Batch batch = images(1);
  const core::TensorList outputs = model.forward(model.inputs(batch));
  const auto loss = [&] { return model.loss(outputs, batch).front().sum.item<double>(); };
  const auto divisor = [&] { return model.normalisers(batch).sum().item<double>(); };
  const double own = loss(), own_divisor = divisor();
  batch.set("target", at::tensor({4, 6}, at::kLong));
  const double other = loss(), other_divisor = divisor();
  batch.set("target", at::full({2}, 1, at::kLong));
  batch.set("target_mixed", at::tensor({4, 6}, at::kLong));
  batch.set("share", at::full({2}, 0.75, at::kFloat));
  EXPECT_NEAR(loss(), 0.75 * own + 0.25 * other, 1e-4);
  EXPECT_NEAR(divisor(), 0.75 * own_divisor + 0.25 * other_divisor, 1e-9);
  EXPECT_NEAR(model.normalisers(batch.slice(0, 1)).item<double>() + model.normalisers(batch.slice(1, 2)).item<double>(),
              divisor(), 1e-9);
  batch.set("share", at::full({2}, 1, at::kFloat));
  EXPECT_NEAR(loss(), own, 1e-5);
  EXPECT_NEAR(divisor(), own_divisor, 1e-9);
}

}  // namespace
}  // namespace stoker::tasks

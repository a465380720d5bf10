// SPDX-License-Identifier: Apache-2.0
// The two layouts of pictures and convolutions: the same numbers, and each all the way through the network.
#include "stoker/tasks/image_classifier.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "stoker/models/builder.h"

namespace stoker::tasks {
namespace {

// A 3 x 3 and a 1 x 1 convolution; what comes out of them is kept in `seen`.
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

core::Batch pictures(int channels) {
  core::Batch batch({0, 0}, {0, 1});
  batch.set("image", at::randint(256, {2, 6, 6, channels}, at::kByte));
  batch.set("target", at::full({2}, 1, at::kLong));
  return batch;
}

class Layouts : public ::testing::TestWithParam<int> {};  // channels of the pictures

TEST_P(Layouts, GiveTheSameNumbersAndGoAllTheWay) {
  core::TensorList seen;
  ClassifierOptions options;
  options.preprocessing = {.channels = GetParam(), .image_size = 6, .resize = 6, .mean = {0.5}, .std = {0.5}};
  options.preprocessing.mean.resize(GetParam(), 0.5);
  options.preprocessing.std.resize(GetParam(), 0.5);
  ImageClassifier model(two_convolutions(GetParam(), seen), options);
  const core::Batch batch = pictures(GetParam());
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

}  // namespace
}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// Properties of every network: seeded weights, statistics in one flat tensor, freezing, moving, loading.
#include "stoker/models/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"
#include "stoker/models/gpt.h"
#include "stoker/models/registry.h"

namespace stoker::models {
namespace {

std::unique_ptr<Network> make_cnn_of(std::uint64_t seed, int classes = 10) {
  return make_network("cnn", {.classes = classes, .channels = 3, .image_size = 32, .seed = seed});
}

at::Tensor make_images(std::int64_t count = 4) {
  return (at::arange(count * 3 * 32 * 32, at::kFloat) * 0.37).sin().reshape({count, 3, 32, 32});
}

std::map<std::string, at::Tensor> copy_of(const Network& network) {
  std::map<std::string, at::Tensor> tensors;
  for (const core::Parameter& parameter : network.parameters()) {
    tensors[parameter.name] = parameter.tensor.detach().clone();
  }
  for (const core::NamedTensor& buffer : network.buffers()) {
    tensors[buffer.name] = buffer.tensor.clone();
  }
  return tensors;
}

TEST(Network, WeightsAreAFunctionOfTheSeed) {
  const auto a = copy_of(*make_cnn_of(1)), same = copy_of(*make_cnn_of(1)), other = copy_of(*make_cnn_of(2));
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(tensor.equal(same.at(name))) << name;
    if (tensor.dim() > 1) {
      EXPECT_FALSE(tensor.equal(other.at(name))) << name;
    }
  }
  // Another number of classes changes only the head.
  const auto fewer = copy_of(*make_cnn_of(1, 3));
  EXPECT_TRUE(a.at("layer2.widen.conv.weight").equal(fewer.at("layer2.widen.conv.weight")));
}

TEST(Network, WeightsFollowTheirDistributions) {
  const auto weights = copy_of(*make_network("resnet18", {}));
  const at::Tensor conv = weights.at("layer4.1.conv2.weight").to(at::kDouble);  // 2.36 M values
  const double deviation = std::sqrt(2.0 / (512 * 9));
  EXPECT_NEAR(conv.mean().item<double>(), 0, 5 * deviation / std::sqrt(2.36e6));
  EXPECT_NEAR(conv.std().item<double>(), deviation, 0.002 * deviation);
  EXPECT_NEAR((conv.abs() < deviation).to(at::kDouble).mean().item<double>(), 0.6827, 0.002);  // one sigma
  const double bound = 1 / std::sqrt(512.0);
  const at::Tensor linear = weights.at("fc.weight");
  EXPECT_LE(linear.abs().max().item<double>(), bound);
  EXPECT_NEAR(linear.std().item<double>(), bound / std::sqrt(3.0), 0.02 * bound);
}

TEST(Network, FreezeCountsGroupsOfSegments) {
  const auto network = make_network("resnet18", {.classes = 10, .channels = 3, .image_size = 32});
  EXPECT_EQ(network->freeze_groups(),
            (std::vector<std::string>{"stem", "layer1", "layer2", "layer3", "layer4", "head"}));
  EXPECT_EQ(network->segment(2).name, "layer1.1");
  network->set_frozen(2);
  for (const core::Parameter& parameter : network->parameters()) {
    const bool frozen = parameter.segments.front() <= 2;  // the stem and both blocks of layer1
    EXPECT_EQ(parameter.tensor.requires_grad(), !frozen) << parameter.name;
  }
  EXPECT_THROW(network->set_frozen(7), ConfigError);
}

TEST(Network, ATiedParameterListsTheSegmentsThatUseIt) {
  const auto network = make_gpt({.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 8, .dropout = 0.1});
  for (const core::Parameter& parameter : network->parameters()) {
    const std::size_t users = parameter.name == "wte.weight" ? 2 : 1;
    EXPECT_EQ(parameter.segments.size(), users) << parameter.name;
  }
  EXPECT_EQ(network->parameters()[0].segments, (std::vector<int>{0, network->segments() - 1}));
}

TEST(Network, ASegmentIsTheFoldOverItsParts) {
  const auto network = make_gpt({.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 8});
  const at::Tensor ids = at::arange(8).reshape({1, 8});
  core::TensorList values{ids};
  int parts = 0;
  for (int segment = 0; segment < network->segments(); ++segment) {
    core::TensorList whole = network->forward_segment(segment, values);
    for (const InnerSegment& part : network->segment(segment).inner) {
      values = part.forward(std::move(values));
      ++parts;
    }
    if (!network->segment(segment).inner.empty()) {
      ASSERT_EQ(values.size(), whole.size());
      EXPECT_TRUE(values[0].equal(whole[0])) << network->segment(segment).name;
    }
    values = std::move(whole);
  }
  EXPECT_EQ(parts, 4) << "attention and mlp of two blocks";
}

TEST(NetworkBuilder, LayersNeedASegment) {
  NetworkBuilder builder(1);
  EXPECT_THROW((void)builder.dropout(0.1), ConfigError);
  EXPECT_THROW((void)builder.linear("fc", 2, 3), ConfigError);
  EXPECT_THROW(builder.segment_draws(), ConfigError);
  EXPECT_THROW(builder.end_segment([](const at::Tensor& x) { return x; }), ConfigError);
}

TEST(Network, StatisticsAreViewsOfOneTensor) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto network = make_cnn_of(1);
    network->to(at::kCPU, dtype);
    const at::Tensor flat = network->norm_buffers().at(0), before = flat.clone();
    std::int64_t total = 0;
    for (const core::NamedTensor& buffer : network->buffers()) {
      EXPECT_TRUE(buffer.tensor.storage().is_alias_of(flat.storage())) << buffer.name;
      total += buffer.tensor.numel();
    }
    EXPECT_EQ(flat.numel(), total);
    (void)network->forward(make_images().to(dtype));
    EXPECT_FALSE(flat.equal(before));  // the layers write into it ...
    const at::Tensor mean = network->buffers()[0].tensor.clone();
    flat.copy_(before);  // ... and one copy puts everything back
    EXPECT_FALSE(network->buffers()[0].tensor.equal(mean));
    network->set_training(false);
    (void)network->forward(make_images().to(dtype));
    EXPECT_TRUE(flat.equal(before));
  }
  EXPECT_TRUE(make_network("mlp", {})->norm_buffers().empty());
}

TEST(Network, TheChainIsTheNetwork) {
  const auto network = make_cnn_of(3);
  network->set_training(false);
  core::TensorList values{make_images()};
  for (int segment = 0; segment < network->segments(); ++segment) {
    values = network->forward_segment(segment, std::move(values));
  }
  EXPECT_TRUE(values[0].equal(network->forward(make_images())));
  EXPECT_EQ(network->segment(network->segments() - 1).name, "head");
}

TEST(Network, FrozenSegmentsStayAsTheyAre) {
  const auto network = make_cnn_of(4);
  network->set_frozen(2);
  const auto before = copy_of(*network);
  network->forward(make_images()).sum().backward();
  for (const core::Parameter& parameter : network->parameters()) {
    EXPECT_EQ(parameter.tensor.grad().defined(), parameter.segments.front() >= 2) << parameter.name;
  }
  for (const core::NamedTensor& buffer : network->buffers()) {
    const bool frozen = buffer.name.starts_with("stem") || buffer.name.starts_with("layer1");
    EXPECT_EQ(buffer.tensor.equal(before.at(buffer.name)), frozen) << buffer.name;
  }
  network->set_frozen(0);
  EXPECT_TRUE(network->parameters()[0].tensor.requires_grad());
  EXPECT_THROW(network->set_frozen(5), ConfigError);
  EXPECT_THROW(network->set_frozen(-1), ConfigError);
}

TEST(Network, MovesInPlace) {
  const auto network = make_cnn_of(5);
  network->set_training(false);
  const at::Tensor handle = network->parameters()[0].tensor;
  const at::Tensor expected = network->forward(make_images());
  network->to(at::kCPU, at::kDouble);
  EXPECT_EQ(handle.scalar_type(), at::kDouble);
  EXPECT_TRUE(handle.is_leaf() && handle.requires_grad());
  const at::Tensor exact = network->forward(make_images().to(at::kDouble));
  EXPECT_LT((exact - expected).abs().max().item<double>(), 1e-4);
  network->to(at::kCPU, at::kBFloat16);  // statistics stay in float32 unless the network is in float64
  EXPECT_EQ(network->norm_buffers()[0].scalar_type(), at::kFloat);
}

TEST(Network, OneValuePerChannelIsRefusedInWords) {
  const auto network = make_network("resnet18", {.image_size = 32});
  const at::Tensor one = make_images(1);
  try {
    (void)network->forward(one);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("at least 2 samples"), std::string::npos) << error.what();
  }
  network->set_training(false);
  EXPECT_EQ(network->forward(one).size(0), 1);
}

TEST(Network, LoadsWhatFitsAndSaysTheRest) {
  const auto source = make_cnn_of(6);
  auto weights = copy_of(*source);
  const auto same = make_cnn_of(7);
  EXPECT_TRUE(same->load(weights).exact());
  same->set_training(false), source->set_training(false);
  EXPECT_TRUE(same->forward(make_images()).equal(source->forward(make_images())));

  weights.erase("stem.bn.weight");
  weights["stem.bn.num_batches_tracked"] = at::ones({}, at::kLong);
  weights["neck.weight"] = at::ones({3});
  for (auto& [name, tensor] : weights) {
    if (tensor.scalar_type() == at::kFloat) {
      tensor = tensor.to(at::kHalf);
    }
  }
  const auto tuned = make_cnn_of(8, 3);
  const at::Tensor head = copy_of(*tuned).at("fc.weight");
  const LoadReport report = tuned->load(weights);
  EXPECT_TRUE(report.new_head);
  EXPECT_EQ(report.missing, std::vector<std::string>{"stem.bn.weight"});
  EXPECT_EQ(report.foreign, std::vector<std::string>{"neck.weight"});
  EXPECT_EQ(report.wrong_shape, std::vector<std::string>{"fc.weight: [10, 128] in the file, [3, 128] here"});
  EXPECT_NE(report.text().find("the head is new"), std::string::npos) << report.text();
  EXPECT_TRUE(copy_of(*tuned).at("fc.weight").equal(head));
  EXPECT_TRUE(tuned->parameters()[0].tensor.is_leaf() && tuned->parameters()[0].tensor.requires_grad());
  EXPECT_THROW(tuned->load({{"other", at::ones({1})}}), CheckpointError);
  EXPECT_THROW(tuned->load({}), CheckpointError);
}

}  // namespace
}  // namespace stoker::models

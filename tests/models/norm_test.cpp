// SPDX-License-Identifier: Apache-2.0
// Norms after convolutions: group norm equals torch's, with frozen statistics and with group norm the gradients of
// passes add up to those of the whole batch, and with batch norm they do not.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <map>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"
#include "stoker/models/registry.h"
#include "stoker/models/resnet.h"
#include "stoker/ops/cross_entropy.h"

namespace stoker::models {
namespace {

at::Tensor images(std::int64_t count, std::int64_t channels = 3, std::int64_t size = 16) {
  return (at::arange(count * channels * size * size, at::kDouble) * 0.37).sin().reshape({count, channels, size, size});
}

std::unique_ptr<Network> in_double(std::unique_ptr<Network> network) {
  network->to(at::kCPU, at::kDouble);
  return network;
}

TEST(GroupNorm, EqualsTorchs) {
  for (const auto& [channels, groups] : {std::pair{16L, 8L}, {64L, 32L}, {96L, 32L}, {128L, 32L}, {6L, 3L}, {7L, 1L}}) {
    NetworkBuilder builder(1);
    builder.begin_segment("norm");
    const auto norm = builder.conv_norm(ConvNorm::kGroup, "norm", channels);
    builder.end_segment(norm);
    const auto network = in_double(builder.finish());
    EXPECT_TRUE(network->buffers().empty());
    torch::nn::GroupNorm twin(torch::nn::GroupNormOptions(groups, channels));
    twin->to(at::kDouble);
    {
      const at::NoGradGuard no_grad;
      twin->weight.copy_(at::arange(channels, at::kDouble).cos());
      twin->bias.copy_(at::arange(channels, at::kDouble).sin());
      network->parameters()[0].tensor.copy_(twin->weight);
      network->parameters()[1].tensor.copy_(twin->bias);
    }
    const at::Tensor x = images(3, channels, 5);
    const at::Tensor y = network->forward(x), expected = twin->forward(x);
    EXPECT_TRUE(y.equal(expected)) << channels;
    y.square().sum().backward();
    expected.square().sum().backward();
    EXPECT_TRUE(network->parameters()[0].tensor.grad().equal(twin->weight.grad())) << channels;
    EXPECT_TRUE(network->parameters()[1].tensor.grad().equal(twin->bias.grad())) << channels;
  }
}

TEST(GroupNorm, KeepsFloat32BesideHalfWeights) {
  NetworkBuilder builder(1);
  builder.begin_segment("norm");
  const auto norm = builder.conv_norm(ConvNorm::kGroup, "norm", 8);
  builder.end_segment(norm);
  const auto network = builder.finish();
  const at::Tensor x = images(2, 8).to(at::kBFloat16);
  EXPECT_TRUE(network->forward(x).equal(network->forward(x.to(at::kFloat))));
  EXPECT_EQ(network->parameters()[0].role, core::Role::kNorm) << "no weight decay, and float32 in half models";
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivide) {
  NetworkBuilder builder(1);
  builder.begin_segment("norm");
  EXPECT_THROW((void)builder.group_norm("norm", 10, 4), ConfigError);
  EXPECT_THROW((void)builder.group_norm("norm", 10, 0), ConfigError);
}

TEST(GroupNorm, ReplacesBatchNormUnderTheSameNames) {
  for (const char* name : {"cnn", "cnn48", "resnet18", "resnet50"}) {
    const auto batch = make_network(name, {.image_size = 32}),
               group = make_network(name, {.image_size = 32, .norm = ConvNorm::kGroup});
    EXPECT_TRUE(group->norm_buffers().empty()) << name;
    ASSERT_EQ(group->parameters().size(), batch->parameters().size()) << name;
    for (std::size_t i = 0; i < batch->parameters().size(); ++i) {
      EXPECT_EQ(group->parameters()[i].name, batch->parameters()[i].name);
      EXPECT_TRUE(group->parameters()[i].tensor.equal(batch->parameters()[i].tensor)) << batch->parameters()[i].name;
    }
  }
  EXPECT_THROW((void)make_network("mlp", {.norm = ConvNorm::kGroup}), ConfigError);
}

// Gradients of the summed loss of 8 images in passes of so many.
std::map<std::string, at::Tensor> gradients(const std::function<std::unique_ptr<Network>()>& make, std::int64_t pass) {
  const auto network = make();
  const at::Tensor x = images(8), target = at::arange(8, at::kLong);
  for (std::int64_t first = 0; first < 8; first += pass) {
    ops::cross_entropy_sum(network->forward(x.slice(0, first, first + pass)), target.slice(0, first, first + pass))
        .backward();
  }
  std::map<std::string, at::Tensor> result;
  for (const core::Parameter& each : network->parameters()) {
    result[each.name] = each.tensor.grad();
  }
  return result;
}

// The largest difference between passes and the whole batch, relative to the largest gradient of a tensor.
double difference(const std::function<std::unique_ptr<Network>()>& make, std::int64_t pass) {
  const auto whole = gradients(make, 8), split = gradients(make, pass);
  double most = 0;
  for (const auto& [name, gradient] : whole) {
    const double largest = gradient.abs().max().item<double>();
    most = std::max(most, (split.at(name) - gradient).abs().max().item<double>() / largest);
  }
  return most;
}

// Statistics of other images, as a trained network has.
std::unique_ptr<Network> with_statistics(std::unique_ptr<Network> network, bool frozen) {
  (void)network->forward((images(5) + 0.3).to(network->parameters()[0].tensor.scalar_type()));
  network->freeze_statistics(frozen);
  return network;
}

TEST(Norms, PassesAddUpExactlyWithGroupNormAndWithFrozenStatistics) {
  const auto cnn = [](ConvNorm norm) {
    return in_double(make_network("cnn", {.image_size = 16, .seed = 2, .norm = norm}));
  };
  const auto resnet = [](ConvNorm norm) {
    return in_double(make_resnet({.seed = 3, .norm = norm}, {.blocks = {1, 1, 1, 1}, .width = 8, .small_stem = true}));
  };
  for (const std::function<std::unique_ptr<Network>(ConvNorm)>& make : {std::function(cnn), std::function(resnet)}) {
    for (const std::int64_t pass : {1, 2, 4}) {
      EXPECT_LT(difference([&] { return make(ConvNorm::kGroup); }, pass), 1e-10) << pass;
      EXPECT_LT(difference([&] { return with_statistics(make(ConvNorm::kBatch), true); }, pass), 1e-10) << pass;
    }
    EXPECT_GT(difference([&] { return with_statistics(make(ConvNorm::kBatch), false); }, 4), 1e-3) << "the control";
  }
}

TEST(Norms, FrozenStatisticsStayAndWeightsLearn) {
  const auto network = with_statistics(make_network("cnn", {.image_size = 16}), true);
  const at::Tensor before = network->norm_buffers().at(0).clone();
  network->forward(images(4).to(at::kFloat)).square().sum().backward();
  EXPECT_TRUE(network->norm_buffers().at(0).equal(before));
  for (const core::Parameter& each : network->parameters()) {
    EXPECT_GT(each.tensor.grad().abs().max().item<float>(), 0) << each.name;
  }
  network->freeze_statistics(false);
  (void)network->forward(images(4).to(at::kFloat));
  EXPECT_FALSE(network->norm_buffers().at(0).equal(before));
}

}  // namespace
}  // namespace stoker::models

// SPDX-License-Identifier: Apache-2.0
// A torch::nn module keeps its names, roles, mode and statistics as a segment, wherever it is moved.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Block : torch::nn::Module {
  Block()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(2))),
        scale(register_parameter("scale", at::zeros({2}))) {}
  at::Tensor forward(const at::Tensor& x) { return norm(conv(x)) + scale.reshape({1, 2, 1, 1}); }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  at::Tensor scale;
};

std::unique_ptr<Network> network_of(const std::shared_ptr<Block>& block, const std::string& prefix = "") {
  NetworkBuilder builder(1);
  builder.module_segment(
      "block", block, [block](const at::Tensor& x) { return block->forward(x); }, prefix);
  return builder.finish();
}

at::Tensor images() { return (at::arange(4 * 25, at::kFloat) * 0.37).sin().reshape({4, 1, 5, 5}); }

std::vector<std::string> names(const Network& network) {
  std::vector<std::string> result;
  for (const core::Parameter& parameter : network.parameters()) {
    result.push_back(parameter.name);
  }
  return result;
}

TEST(ModuleSegment, HasTheModulesNamesAndRoles) {
  const auto network = network_of(std::make_shared<Block>(), "stage1.");
  EXPECT_THAT(names(*network), ElementsAre("stage1.scale", "stage1.conv.weight", "stage1.conv.bias",
                                           "stage1.norm.weight", "stage1.norm.bias"));
  using core::Role;
  const Role roles[] = {Role::kBias, Role::kConv, Role::kBias, Role::kNorm, Role::kNorm};
  for (std::size_t i = 0; i < std::size(roles); ++i) {
    EXPECT_EQ(network->parameters()[i].role, roles[i]) << network->parameters()[i].name;
  }
  ASSERT_EQ(network->buffers().size(), 2U);
  EXPECT_EQ(network->buffers()[0].name, "stage1.norm.running_mean");
}

TEST(ModuleSegment, RunningStatisticsAreTheModulesAndOneFlatTensor) {
  const auto block = std::make_shared<Block>();
  const auto network = network_of(block);
  network->to(at::kCPU, at::kDouble);
  (void)network->forward(images().to(at::kDouble));
  const at::Tensor flat = at::cat({block->norm->running_mean, block->norm->running_var});
  EXPECT_TRUE(network->norm_buffers().at(0).equal(flat));
  EXPECT_FALSE(flat.equal(at::cat({at::zeros({2}), at::zeros({2}) + 1}).to(at::kDouble)));
  // Values restored after a failed step are those that the module computes with.
  network->norm_buffers()[0].fill_(2);
  EXPECT_EQ(block->norm->running_var[0].item<double>(), 2);
}

TEST(ModuleSegment, FollowsTheNetworksModeAndFreezing) {
  const auto block = std::make_shared<Block>();
  const auto network = network_of(block);
  const at::Tensor trained = network->forward(images());
  network->set_training(false);
  const at::Tensor before = network->norm_buffers()[0].clone();
  EXPECT_FALSE(network->forward(images()).equal(trained));
  EXPECT_TRUE(network->norm_buffers()[0].equal(before));
  EXPECT_FALSE(block->norm->is_training());

  network->set_training(true);
  network->set_frozen(1);
  (void)network->forward(images());
  EXPECT_TRUE(network->norm_buffers()[0].equal(before)) << "a frozen segment keeps its statistics";
  EXPECT_FALSE(block->conv->weight.requires_grad());
  network->set_frozen(0);
  (void)network->forward(images());
  EXPECT_FALSE(network->norm_buffers()[0].equal(before));
}

TEST(ModuleSegment, FrozenStatisticsAreUsedInTraining) {
  const auto block = std::make_shared<Block>();
  const auto network = network_of(block);
  (void)network->forward(images());
  network->set_training(false);
  const at::Tensor evaluated = network->forward(images()), before = network->norm_buffers()[0].clone();
  network->set_training(true);
  network->freeze_statistics(true);
  EXPECT_TRUE(network->forward(images()).equal(evaluated));
  EXPECT_TRUE(network->norm_buffers()[0].equal(before));
  EXPECT_TRUE(block->is_training()) << "only its batch norm is in evaluation mode";
  network->freeze_statistics(false);
  EXPECT_FALSE(network->forward(images()).equal(evaluated));
  EXPECT_FALSE(network->norm_buffers()[0].equal(before));
}

// The usual way to fine-tune a network of one's own: its train() leaves batch norms in evaluation mode.
TEST(ModuleSegment, AModulesOwnTrainDecidesAboutItsBatchNorms) {
  struct Frozen : Block {
    void train(bool on) override {
      Block::train(on);
      norm->eval();
    }
  };
  const auto block = std::make_shared<Frozen>();
  block->train(true);
  const auto network = network_of(block);
  const at::Tensor before = network->norm_buffers()[0].clone();
  (void)network->forward(images());
  EXPECT_TRUE(network->norm_buffers()[0].equal(before));
  network->freeze_statistics(true);
  (void)network->forward(images());
  network->freeze_statistics(false);
  (void)network->forward(images());
  EXPECT_TRUE(network->norm_buffers()[0].equal(before));
}

// Parameters that a program freezes before or after the network is built stay frozen, whatever freeze= says.
TEST(ModuleSegment, KeepsFrozenWhatItsOwnerFroze) {
  const auto block = std::make_shared<Block>();
  block->conv->weight.set_requires_grad(false);
  const auto network = network_of(block);
  EXPECT_FALSE(block->conv->weight.requires_grad()) << "after the network is built";
  block->scale.set_requires_grad(false);
  for (const int segments : {0, 1, 1, 0}) {
    network->set_frozen(segments);
    EXPECT_FALSE(block->conv->weight.requires_grad()) << segments;
    EXPECT_FALSE(block->scale.requires_grad()) << segments;
    EXPECT_EQ(block->conv->bias.requires_grad(), segments == 0) << segments;
  }
}

TEST(ModuleSegment, SaysWhichKindOfModuleHoldsAParameter) {
  struct Kinds : torch::nn::Module {
    Kinds() {
      register_module("words", torch::nn::Embedding(5, 3));
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({3})));
      register_module("linear", torch::nn::Linear(3, 2));
      register_module("drop", torch::nn::Dropout(0.5));
      register_parameter("table", at::zeros({4, 4}));
    }
  };
  NetworkBuilder builder(1);
  builder.module_segment("all", std::make_shared<Kinds>(), [](const at::Tensor& x) { return x; });
  const auto network = builder.finish();
  using core::Role;
  std::map<std::string, Role> roles;
  for (const core::Parameter& parameter : network->parameters()) {
    roles[parameter.name] = parameter.role;
  }
  EXPECT_EQ(roles.at("words.weight"), Role::kEmbedding);
  EXPECT_EQ(roles.at("norm.weight"), Role::kNorm);
  EXPECT_EQ(roles.at("norm.bias"), Role::kNorm);
  EXPECT_EQ(roles.at("linear.weight"), Role::kLinear);
  EXPECT_EQ(roles.at("linear.bias"), Role::kBias);
  EXPECT_EQ(roles.at("table"), Role::kLinear);
}

TEST(ModuleSegment, CountsATiedParameterOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      words = register_module("words", torch::nn::Embedding(5, 3));
      head = register_module("head", torch::nn::Linear(torch::nn::LinearOptions(3, 5).bias(false)));
      head->weight = head->register_parameter("weight_tied", words->weight);
    }
    torch::nn::Embedding words = nullptr;
    torch::nn::Linear head = nullptr;
  };
  NetworkBuilder builder(1);
  builder.module_segment("tied", std::make_shared<Tied>(), [](const at::Tensor& x) { return x; });
  EXPECT_THAT(names(*builder.finish()), ElementsAre("words.weight", "head.weight"));
}

TEST(ModuleSegment, RefusesWhatItCannotKeep) {
  struct Empty : torch::nn::Module {};
  struct Counts : torch::nn::Module {
    Counts() {
      register_module("linear", torch::nn::Linear(1, 1));
      register_buffer("ids", at::zeros({3}, at::kLong));
    }
  };
  const auto error_of = [](std::shared_ptr<torch::nn::Module> module) -> std::string {
    NetworkBuilder builder(1);
    try {
      builder.module_segment("segment", std::move(module), [](const at::Tensor& x) { return x; });
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(std::make_shared<Empty>()), HasSubstr("segment \"segment\" has no parameter"));
  EXPECT_THAT(error_of(std::make_shared<Counts>()), HasSubstr("buffer \"ids\""));
}

}  // namespace
}  // namespace stoker::models

// SPDX-License-Identifier: Apache-2.0
// Variants of ResNet: biases that the norm cancels, a small stem, and a network without norms whose blocks start as
// their shortcuts. golden_tests compare the published networks with torchvision's.
#include "stoker/models/resnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "stoker/base/error.h"
#include "stoker/ops/cross_entropy.h"

namespace stoker::models {
namespace {

at::Tensor make_images(std::int64_t count = 4, std::int64_t size = 32) {
  return (at::arange(count * 3 * size * size, at::kDouble) * 0.37).sin().reshape({count, 3, size, size});
}

std::unique_ptr<Network> in_double(std::unique_ptr<Network> network) {
  network->to(at::kCPU, at::kDouble);
  return network;
}

std::unique_ptr<Network> make_slim(bool norm) {
  return in_double(make_resnet({.seed = 3}, {.blocks = {1, 2, 1, 1}, .width = 8, .small_stem = true, .norm = norm}));
}

TEST(ConvBias, IsDrawnAsPyTorchDrawsAndTheNormTakesItAway) {
  for (const char* name : {"cnn", "resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    const auto plain = in_double(make_network(name, {.image_size = 32, .seed = 2}));
    const auto biased = in_double(make_network(name, {.image_size = 32, .seed = 2, .conv_bias = true}));
    const at::Tensor expected = plain->forward(make_images()), logits = biased->forward(make_images());
    EXPECT_LT(((logits - expected).abs().max() / expected.abs().max()).item<double>(), 1e-9);
    plain->set_training(false);  // in evaluation the norms use running means, which know nothing of the biases yet
    biased->set_training(false);
    EXPECT_GT((biased->forward(make_images()) - plain->forward(make_images())).abs().max().item<double>(), 1e-3);
    std::size_t convolutions = 0, biases = 0;
    double fan_in = 0;
    for (const core::Parameter& parameter : biased->parameters()) {
      if (parameter.role == core::Role::kConv) {
        fan_in = static_cast<double>(parameter.tensor[0].numel());
        ++convolutions;
      } else if (parameter.role == core::Role::kBias && parameter.name != "fc.bias") {
        ++biases;
        EXPECT_LE(parameter.tensor.abs().max().item<double>(), 1 / std::sqrt(fan_in)) << parameter.name;
        EXPECT_NEAR(parameter.tensor.std().item<double>(), 1 / std::sqrt(3 * fan_in), 0.3 / std::sqrt(fan_in));
      }
    }
    EXPECT_EQ(biases, convolutions);
  }
}

TEST(Resnet, SlimWithASmallStem) {
  const auto network = make_resnet({.classes = 10}, {.width = 16, .small_stem = true});
  // By hand: stem 3*16*9 + 2*16; layer1 6 convolutions of 16*16*9 and norms of 16; layer2 ... layer4 of w = 32, 64, 128
  // have b = 4, 6, 3 blocks: (2b - 1) w*w*9 + w/2*w*9 + w/2*w and 2b+1 norms; head 128*10 + 10.
  std::int64_t count = 3 * 16 * 9 + 2 * 16 + 6 * (16 * 16 * 9 + 2 * 16) + 128 * 10 + 10;
  for (const auto& [w, b] : {std::pair{32, 4}, {64, 6}, {128, 3}}) {
    count += (2 * b - 1) * w * w * 9 + w / 2 * w * 9 + w / 2 * w + (2 * b + 1) * 2 * w;
  }
  EXPECT_EQ(core::parameter_count(network->parameters()), count);
  const at::NoGradGuard no_grad;
  const at::Tensor stem = network->forward_segment(0, {at::zeros({2, 3, 32, 32})}).at(0);
  EXPECT_EQ(stem.sizes(), (std::vector<std::int64_t>{2, 16, 32, 32}));
  EXPECT_EQ(network->forward(at::zeros({2, 3, 32, 32})).sizes(), (std::vector<std::int64_t>{2, 10}));
  EXPECT_THROW((void)make_resnet({}, {.blocks = {1, 1, 0, 1}}), ConfigError);
  EXPECT_THROW((void)make_resnet({}, {.width = 0}), ConfigError);
}

TEST(Resnet, WithoutNormsNoSampleSeesAnother) {
  const at::NoGradGuard no_grad;
  const auto network = make_slim(false);
  EXPECT_TRUE(network->norm_buffers().empty());
  const at::Tensor together = network->forward(make_images());
  const at::Tensor alone = network->forward(make_images().slice(0, 2, 3));
  EXPECT_LT((together.slice(0, 2, 3) - alone).abs().max().item<double>(), 1e-12);
  const auto with = make_slim(true);
  EXPECT_GT((with->forward(make_images()).slice(0, 2, 3) - with->forward(make_images().slice(0, 2, 3)))
                .abs()
                .max()
                .item<double>(),
            1e-3);
}

TEST(Resnet, WithoutNormsABlockStartsAsItsShortcut) {
  for (const bool bottleneck : {false, true}) {
    const ResnetShape shape{
        .blocks = {2, 1, 1, 1}, .bottleneck = bottleneck, .width = 8, .small_stem = true, .norm = false};
    const auto network = in_double(make_resnet({.seed = 3}, shape));
    const at::Tensor before = network->forward(make_images()).detach();
    const std::string last = bottleneck ? ".conv3.weight" : ".conv2.weight";
    const std::string last_bias = bottleneck ? ".conv3.bias" : ".conv2.bias";
    int biases = 0;
    {
      const at::NoGradGuard no_grad;
      for (const core::Parameter& parameter : network->parameters()) {
        if (parameter.name.ends_with(last)) {
          EXPECT_EQ(parameter.tensor.abs().max().item<double>(), 0) << parameter.name;
        } else if (parameter.name.ends_with(last_bias)) {
          parameter.tensor.zero_();  // "before" had none
          ++biases;
        } else if (parameter.role == core::Role::kBias && parameter.name != "fc.bias") {
          EXPECT_EQ(parameter.tensor.abs().max().item<double>(), 0) << parameter.name;
        } else if (parameter.name.ends_with(".conv1.weight")) {
          const double kaiming = std::sqrt(2.0 * static_cast<double>(parameter.tensor.size(1)) /
                                           static_cast<double>(parameter.tensor.size(0) * parameter.tensor[0].numel()));
          const double fixup = std::pow(5, bottleneck ? -0.25 : -0.5);
          EXPECT_NEAR(parameter.tensor.std().item<double>(), kaiming * fixup, 0.2 * kaiming * fixup) << parameter.name;
          parameter.tensor.mul_(2);
        }
      }
    }
    const at::Tensor after = network->forward(make_images());
    EXPECT_TRUE(after.equal(before)) << "what a block adds, including a constant, has no effect yet";
    EXPECT_EQ(biases, 5) << "one per block";
    (after * make_images(4, 2).flatten(1).slice(1, 0, 10)).sum().backward();
    for (const core::Parameter& parameter : network->parameters()) {
      if (parameter.name.ends_with(last)) {
        EXPECT_GT(parameter.tensor.grad().abs().max().item<double>(), 0) << parameter.name << " can leave zero";
      }
    }
  }
}

TEST(Resnet, WithoutNormsItLearns) {
  const at::Tensor target = at::arange(20, at::kLong).remainder(10);
  const at::Tensor frequency = 0.05 + 0.1 * target.to(at::kDouble).unsqueeze(1);
  const at::Tensor images = (at::arange(3 * 8 * 8, at::kDouble) * frequency).sin().reshape({20, 3, 8, 8});
  const auto network = make_slim(false);
  std::map<std::string, at::Tensor> velocity;
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    const at::Tensor loss = ops::cross_entropy_sum(network->forward(images), target) / 20;
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const core::Parameter& parameter : network->parameters()) {
      at::Tensor& v = velocity[parameter.name];
      v = v.defined() ? v * 0.9 + parameter.tensor.grad() : parameter.tensor.grad().clone();
      parameter.tensor.sub_(v * 0.03);
      parameter.tensor.mutable_grad().reset();
    }
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  EXPECT_LT(last, 0.5 * first);
}

}  // namespace
}  // namespace stoker::models

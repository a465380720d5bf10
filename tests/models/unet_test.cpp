// SPDX-License-Identifier: Apache-2.0
// The U-Net against a plain one in PyTorch, and properties of every U-Net.
#include "stoker/models/unet.h"

#include <ATen/ops/roll.h>
#include <ATen/ops/zeros.h>

#include "golden/unet.h"
#include "stoker/base/error.h"
#include "support/golden_network.h"

namespace stoker::models {
namespace {

constexpr UnetOptions kSmall{.channels = 3, .classes = 4, .width = 4, .depth = 2};

at::Tensor make_images(std::int64_t height = 8, std::int64_t width = 12) { return wave({2, 3, height, width}); }

std::unique_ptr<Network> make_golden() {
  auto network = make_unet(kSmall);
  fill_from_golden(*network, golden::unet_state);
  return network;
}

TEST(Unet, EqualsAPlainOneInPyTorch) {
  const auto network = make_golden();
  network->set_training(false);
  expect_golden(network->forward(make_images()).flatten().slice(0, 0, {}, 7), golden::unet_eval, 1e-12);
  network->set_training(true);
  const at::Tensor logits = network->forward(make_images());
  expect_golden(logits.flatten().slice(0, 0, {}, 7), golden::unet_train, 1e-12);
  (logits * wave(logits.sizes())).sum().backward();
  expect_golden_gradients(*network, golden::unet_state, golden::unet_gradients, 1e-12);
}

TEST(Unet, NamesEveryPixelAndReachesEveryParameter) {
  const auto network = make_unet({.channels = 1, .classes = 3, .width = 4, .depth = 3});
  const at::Tensor logits = network->forward(make_images(16, 24).slice(1, 0, 1).to(at::kFloat));
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{2, 3, 16, 24}));
  (logits * wave(logits.sizes()).to(at::kFloat)).sum().backward();
  for (const core::Parameter& parameter : network->parameters()) {
    ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
    EXPECT_GT(parameter.tensor.grad().abs().max().item<double>(), 0) << parameter.name;
  }
}

TEST(Unet, TheChainIsTheNetworkAndItsSkipsPass) {
  const at::NoGradGuard no_grad;
  const auto network = make_golden();
  network->set_training(false);
  core::TensorList stack{make_images()};
  const std::vector<std::pair<std::string, std::size_t>> sizes{{"down0", 1}, {"down1", 2}, {"down2", 3},
                                                               {"up1", 2},   {"up0", 1},   {"head", 1}};
  ASSERT_EQ(network->segments(), 6);
  for (int segment = 0; segment < network->segments(); ++segment) {
    stack = network->forward_segment(segment, std::move(stack));
    EXPECT_EQ(network->segment(segment).name, sizes[segment].first);
    EXPECT_EQ(stack.size(), sizes[segment].second) << segment;
  }
  EXPECT_TRUE(stack[0].equal(network->forward(make_images())));
  // Skip connections are used: changing one changes the output.
  stack = network->forward_segment(1, network->forward_segment(0, {make_images()}));
  const at::Tensor with = network->forward_segment(3, network->forward_segment(2, stack)).back();
  stack.back() = stack.back() + 1e-3;
  const at::Tensor other = network->forward_segment(3, network->forward_segment(2, stack)).back();
  EXPECT_FALSE(with.equal(other));
}

// An image moved by a multiple of 2^depth gives the same logits, moved likewise, where the border has no influence.
TEST(Unet, MovesWithTheImage) {
  const at::NoGradGuard no_grad;
  const auto network = make_golden();
  network->set_training(false);
  at::Tensor image = at::zeros({1, 3, 96, 96}, at::kDouble);
  image.slice(2, 40, 52).slice(3, 40, 52).copy_(make_images(12, 12).slice(0, 0, 1));
  const at::Tensor here = network->forward(image), there = network->forward(at::roll(image, {8, -4}, {2, 3}));
  const auto middle = [](const at::Tensor& x) { return x.slice(2, 40, 60).slice(3, 36, 56); };
  const at::Tensor moved = middle(at::roll(here, {8, -4}, {2, 3}));
  EXPECT_LT((moved - middle(there)).abs().max().item<double>(), 1e-12 * here.abs().max().item<double>());
  EXPECT_GT((moved - middle(here)).abs().max().item<double>(), 1e-2);
}

TEST(Unet, StartsQuietly) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = make_unet({})->forward(make_images(32, 32).to(at::kFloat));
  EXPECT_NEAR(logits.std().item<double>(), std::sqrt(0.5), 0.4);  // for inputs with a mean square of 1/2, after a ReLU
}

TEST(Unet, RefusesWhatMakesNoNetwork) {
  EXPECT_THROW((void)make_unet({.channels = 0}), ConfigError);
  EXPECT_THROW((void)make_unet({.width = 0}), ConfigError);
  EXPECT_THROW((void)make_unet({.depth = 0}), ConfigError);
  EXPECT_THROW((void)make_unet({.depth = 60}), ConfigError);
  const auto network = make_unet(kSmall);
  EXPECT_THROW((void)network->forward(at::zeros({1, 3, 8, 10})), DataError);
  EXPECT_THROW((void)network->forward(at::zeros({1, 3, 6, 8})), DataError);
  EXPECT_THROW((void)network->forward(at::zeros({3, 8, 8})), DataError);
}

}  // namespace
}  // namespace stoker::models

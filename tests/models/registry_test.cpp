// SPDX-License-Identifier: Apache-2.0
// The reference networks against published counts, and the registry's messages. tests/golden/networks_test.cpp compares
// the ResNets with torchvision's.
#include "stoker/models/registry.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

TEST(Registry, CountsArePublishedOnes) {
  // Parameters from torchvision's documentation; multiply-adds from the same tables (GFLOPS there): 1.81, 3.66, 4.09.
  const std::tuple<const char*, std::int64_t, double> published[] = {
      {"resnet18", 11689512, 1.81e9}, {"resnet34", 21797672, 3.66e9}, {"resnet50", 25557032, 4.09e9}};
  for (const auto& [name, parameters, multiply_adds] : published) {
    const auto network = make_network(name, {.classes = 1000, .image_size = 224});
    EXPECT_EQ(core::parameter_count(network->parameters()), parameters) << name;
    EXPECT_NEAR(static_cast<double>(flops(*network, {3, 224, 224})), 2 * multiply_adds, 0.01e9) << name;
    EXPECT_TRUE(network->training());
  }
  // By hand: 12 -> 256 -> 256 -> 10.
  const auto mlp = make_network("mlp", {.classes = 10, .channels = 3, .image_size = 2});
  EXPECT_EQ(flops(*mlp, {3, 2, 2}), 2 * (12 * 256 + 256 * 256 + 256 * 10));
}

TEST(Registry, EveryModelTakesItsImages) {
  const at::NoGradGuard no_grad;
  for (const ModelInfo& model : known_models()) {
    for (const auto& [channels, size] : {std::pair{1, 28}, {3, 32}, {3, 64}}) {
      const auto network = make_network(model.name, {.classes = 7, .channels = channels, .image_size = size});
      const at::Tensor logits = network->forward(at::zeros({3, channels, size, size}));
      EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{3, 7})) << model.name << " " << size;
    }
  }
}

TEST(Registry, SaysWhatWasMeant) {
  try {
    (void)make_network("resnet19", {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"resnet18\""), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)make_network("mlp", {.classes = 0}), ConfigError);
  EXPECT_THROW((void)make_network("mlp", {.channels = -1}), ConfigError);
  EXPECT_THROW((void)make_network("cnn", {.image_size = 4}), ConfigError);
}

TEST(Registry, KnowsANetworkThatAProgramAdds) {
  const auto make = [](const ModelOptions& options) {
    NetworkBuilder builder(options.seed);
    builder.begin_segment("head");
    const Linear head = builder.linear("head", options.channels, options.classes);
    builder.end_segment([head](const at::Tensor& x) { return head(x.mean({2, 3})); });
    return builder.finish();
  };
  add_model({"mean_pixel", "a test's own"}, make);
  EXPECT_EQ(known_models().back().name, "mean_pixel");
  EXPECT_EQ(make_network("mean_pixel", {.classes = 4, .channels = 3})->forward(at::zeros({2, 3, 5, 5})).sizes(),
            (std::vector<std::int64_t>{2, 4}));
  EXPECT_THROW(add_model({"mean_pixel", ""}, make), ConfigError);
  EXPECT_THROW(add_model({"cnn", ""}, make), ConfigError);
  EXPECT_THROW(add_model({"", ""}, make), ConfigError);
}

}  // namespace
}  // namespace stoker::models

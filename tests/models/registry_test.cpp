// SPDX-License-Identifier: Apache-2.0
// The reference networks against torchvision's names, shapes and outputs, and against published counts.
#include "stoker/models/registry.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "golden/resnets.h"
#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {
namespace {

using State = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

std::map<std::string, at::Tensor> named(const Network& network) {
  std::map<std::string, at::Tensor> tensors;
  for (const core::Parameter& parameter : network.parameters()) {
    tensors[parameter.name] = parameter.tensor;
  }
  for (const core::NamedTensor& buffer : network.buffers()) {
    tensors[buffer.name] = buffer.tensor;
  }
  return tensors;
}

// The weights that tests/golden/make_models.py gives the network.
void fill(Network& network, const State& state) {
  const at::NoGradGuard no_grad;
  const auto tensors = named(network);
  double place = 0;
  for (const auto& [name, shape] : state) {
    const at::Tensor& tensor = tensors.at(name);
    const at::Tensor wave = (at::arange(tensor.numel(), at::kDouble) * 0.7 + place).sin().reshape(shape);
    if (tensor.dim() > 1) {
      const double fan_in = static_cast<double>(tensor.numel()) / static_cast<double>(tensor.size(0));
      tensor.copy_(wave * std::sqrt(2 / fan_in));
    } else if (name.ends_with("weight") || name.ends_with("running_var")) {
      tensor.copy_(wave * 0.1 + 1);
    } else {
      tensor.copy_(wave * 0.1);
    }
    ++place;
  }
}

// Relative to the largest value.
void expect_near(const at::Tensor& tensor, const std::vector<double>& golden, double tolerance) {
  double largest = 0;
  for (const double value : golden) {
    largest = std::max(largest, std::abs(value));
  }
  const at::Tensor flat = tensor.flatten();
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), golden[i], tolerance * largest);
  }
}

struct Golden {
  const char* name;
  const State& state;
  const std::vector<double>&eval, &train, &running_var;
};

TEST(Registry, ResnetsAreTorchvisions) {
  const at::NoGradGuard no_grad;
  const Golden goldens[] = {
      {"resnet18", golden::resnet18_state, golden::resnet18_eval, golden::resnet18_train, golden::resnet18_running_var},
      {"resnet50", golden::resnet50_state, golden::resnet50_eval, golden::resnet50_train,
       golden::resnet50_running_var}};
  for (const Golden& each : goldens) {
    SCOPED_TRACE(each.name);
    const auto network = make_network(each.name, {.classes = 5, .image_size = 64});
    const auto tensors = named(*network);
    EXPECT_EQ(tensors.size(), each.state.size());
    for (const auto& [name, shape] : each.state) {
      ASSERT_TRUE(tensors.contains(name)) << name;
      EXPECT_EQ(tensors.at(name).sizes().vec(), shape) << name;
    }
    network->to(at::kCPU, at::kDouble);
    fill(*network, each.state);
    const at::Tensor x = (at::arange(2 * 3 * 64 * 64, at::kDouble) * 0.01).sin().reshape({2, 3, 64, 64});
    network->set_training(false);
    expect_near(network->forward(x), each.eval, 1e-9);
    network->set_training(true);
    expect_near(network->forward(x), each.train, 1e-9);
    expect_near(named(*network).at("bn1.running_var"), each.running_var, 1e-9);
  }
}

TEST(Registry, CountsArePublishedOnes) {
  // Parameters from torchvision's documentation; multiply-adds from the same tables (GFLOPS there): 1.81, 3.66, 4.09.
  const std::tuple<const char*, std::int64_t, double> published[] = {
      {"resnet18", 11689512, 1.81e9}, {"resnet34", 21797672, 3.66e9}, {"resnet50", 25557032, 4.09e9}};
  for (const auto& [name, parameters, multiply_adds] : published) {
    const auto network = make_network(name, {.classes = 1000, .image_size = 224});
    EXPECT_EQ(parameter_count(*network), parameters) << name;
    EXPECT_NEAR(static_cast<double>(flops(*network, {3, 224, 224})), 2 * multiply_adds, 0.01e9) << name;
    EXPECT_TRUE(network->training());
  }
  // By hand: 12 -> 256 -> 256 -> 10.
  const auto mlp = make_network("mlp", {.classes = 10, .channels = 3, .image_size = 2});
  EXPECT_EQ(flops(*mlp, {3, 2, 2}), 2 * (12 * 256 + 256 * 256 + 256 * 10));
}

TEST(Registry, EveryModelTakesItsPictures) {
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

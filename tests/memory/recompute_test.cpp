// SPDX-License-Identifier: Apache-2.0
// Every network gives with recomputation, bit by bit, what it gives without: outputs, gradients, running statistics and
// generators. Among them are the cases that tutorials warn of: dropout, batch norm, and a first layer whose input takes
// no gradient.
#include "stoker/memory/recompute.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "stoker/models/builder.h"
#include "stoker/models/encoder.h"
#include "stoker/models/gpt.h"
#include "stoker/models/resnet.h"
#include "stoker/models/unet.h"
#include "support/recomputed_pass.h"

namespace stoker::memory {
namespace {

using models::NetworkBuilder;
using stoker::testing::expect_same_pass;
using stoker::testing::NetworkChain;
using stoker::testing::PassResult;
using stoker::testing::run_pass;
using stoker::testing::wave_of;

// Convolutions with batch norm, ReLU in place and dropout, the last segment a linear layer.
std::unique_ptr<models::Network> dropout_cnn() {
  NetworkBuilder builder(3);
  std::int64_t in = 3;
  for (const char* name : {"stem", "body"}) {
    builder.begin_segment(name);
    const models::Conv2d conv = builder.conv(std::string(name) + ".conv", {.in = in, .out = 8});
    const models::BatchNorm2d norm = builder.batch_norm(std::string(name) + ".norm", 8);
    const models::Dropout dropout = builder.dropout(0.3);
    builder.end_segment([=](const at::Tensor& x) { return dropout(at::max_pool2d(norm(conv(x)).relu_(), {2, 2})); });
    in = 8;
  }
  builder.begin_segment("head");
  const models::Dropout dropout = builder.dropout(0.5);
  const models::Linear linear = builder.linear("head", 8 * 2 * 2, 5);
  builder.end_segment([=](const at::Tensor& x) { return linear(dropout(x.flatten(1))); });
  return builder.finish();
}

at::Tensor tokens() { return (at::arange(3 * 7, at::kLong) * 5).remainder(13).reshape({3, 7}); }

std::unique_ptr<models::Network> gpt() {
  return models::make_gpt({.vocabulary = 13, .context = 7, .layers = 3, .heads = 2, .width = 8, .dropout = 0.2});
}

std::unique_ptr<models::Network> encoder(double dropout) {
  return models::make_encoder(
      {.vocabulary = 13, .context = 7, .layers = 3, .heads = 2, .width = 8, .dropout = dropout});
}

core::TensorList encoder_inputs() {
  const at::Tensor seen = at::ones({3, 7}, at::kLong);
  seen.select(0, 1).slice(0, 4).fill_(0);
  const at::Tensor types = at::zeros({3, 7}, at::kLong);
  types.slice(1, 3).fill_(1);
  return {tokens(), seen, types};
}

// Not narrower: with 4 channels the plain pass of LibTorch 2.11 writes past the end of a block (found by
// MALLOC_CHECK_=3).
std::unique_ptr<models::Network> resnet(bool bottleneck, int frozen = 0) {
  auto network = models::make_resnet({.classes = 5, .channels = 3, .image_size = 32, .seed = 2},
                                     {.blocks = {2, 1, 1, 1}, .bottleneck = bottleneck, .width = 8});
  network->set_frozen(frozen);
  return network;
}

struct Case {
  const char* name;
  std::function<std::unique_ptr<models::Network>()> network;
  std::function<core::TensorList()> inputs;
  std::vector<const char*> names;  // choices beside "all" and "every:2"
};

const std::vector<Case> kCases = {
    {"Cnn",
     dropout_cnn,
     [] {
       return core::TensorList{wave_of({4, 3, 8, 8})};
     },
     {"stem", "body,head"}},
    {"Gpt", gpt, [] { return core::TensorList{tokens()}; }, {"attention", "mlp", "h.1,h.0/mlp", "h.0,h.0/attention"}},
    {"Encoder",
     [] { return encoder(0.1); },
     encoder_inputs,
     {"attention", "attention,mlp.gelu", "attention.heads,mlp.gelu", "mlp", "layer1,attention,mlp"}},
    {"EncoderWithoutDropout", [] { return encoder(0); }, encoder_inputs, {"attention.heads,mlp.gelu"}},
    {"Resnet",
     [] { return resnet(false); },
     [] {
       return core::TensorList{wave_of({4, 3, 32, 32})};
     },
     {"layer1"}},
    {"Bottleneck",
     [] { return resnet(true); },
     [] {
       return core::TensorList{wave_of({4, 3, 32, 32})};
     },
     {"stem"}},
    {"FrozenResnet",
     [] { return resnet(false, 2); },
     [] {
       return core::TensorList{wave_of({4, 3, 32, 32})};
     },
     {}},
    {"Unet",
     [] { return models::make_unet({.channels = 1, .width = 8, .depth = 2, .seed = 1}); },
     [] {
       return core::TensorList{wave_of({2, 1, 8, 8})};
     },
     {"down0,up0"}}};

// For the log of a failed test.
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class RecomputeNetwork : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, RecomputeNetwork, ::testing::ValuesIn(kCases),
                         [](const auto& given) { return given.param.name; });

TEST_P(RecomputeNetwork, EqualsAPlainPass) {
  std::vector<const char*> choices = {"all", "every:2", "every:1000"};
  choices.insert(choices.end(), GetParam().names.begin(), GetParam().names.end());
  for (const at::ScalarType autocast : {at::kFloat, at::kBFloat16}) {
    NetworkChain model(GetParam().network());
    const core::TensorList inputs = GetParam().inputs();
    const PassResult plain = run_pass(model, inputs, "none", autocast);
    expect_same_pass(run_pass(model, inputs, "none", autocast), plain);  // a plain pass repeats itself
    for (const char* choice : choices) {
      SCOPED_TRACE(fmt::format("{} {}", choice, autocast == at::kFloat ? "float32" : "bfloat16"));
      expect_same_pass(run_pass(model, inputs, choice, autocast), plain);
    }
  }
}

TEST(Recompute, GivesInputsTheirGradients) {
  for (const Case& each : kCases) {
    core::TensorList inputs = each.inputs();
    if (!inputs.front().is_floating_point()) {
      continue;  // tokens
    }
    SCOPED_TRACE(each.name);
    NetworkChain model(each.network());
    at::Tensor input = inputs.front().set_requires_grad(true);
    (void)run_pass(model, inputs, "none");
    const at::Tensor plain = std::exchange(input.mutable_grad(), {});
    for (const char* choice : {"all", "every:2"}) {
      (void)run_pass(model, inputs, choice);
      EXPECT_TRUE(std::exchange(input.mutable_grad(), {}).equal(plain)) << choice;
    }
  }
}

}  // namespace
}  // namespace stoker::memory

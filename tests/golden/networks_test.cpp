// SPDX-License-Identifier: Apache-2.0
// Reference networks compared with torchvision's and transformers' (make_networks.py): names, shapes, logits in both
// modes, losses, gradients of every parameter, running statistics.
#include <ATen/ops/full.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "golden/golden_file.h"
#include "stoker/models/gpt.h"
#include "stoker/models/registry.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/ops/linear_cross_entropy.h"

namespace stoker::golden {
namespace {

using models::Network;
constexpr int kClasses = 5;
constexpr std::int64_t kBatch = 4, kSize = 64;

const GoldenFile& goldens() {
  static const GoldenFile file("networks.safetensors");
  return file;
}

std::vector<core::NamedTensor> state_of(const Network& network) {
  std::vector<core::NamedTensor> all = network.buffers();
  for (const core::Parameter& parameter : network.parameters()) {
    all.push_back({parameter.name, parameter.tensor.detach()});
  }
  return all;
}

std::string names_and_shapes(const Network& network) {
  std::vector<std::string> rows;
  for (const core::NamedTensor& each : state_of(network)) {
    rows.push_back(fmt::format("{} {}", each.name, each.tensor.sizes().vec()));
  }
  std::ranges::sort(rows);
  return fmt::format("{}", fmt::join(rows, "\n"));
}

at::Tensor norm_weight(const std::string& name, at::IntArrayRef shape, bool calm, bool last) {
  if (name.ends_with("weight")) {
    return calm   ? uniform(name, shape, 0.15, 0.3)
           : last ? uniform(name, shape, 0.1, 0.3)
                  : uniform(name, shape, 0.5, 1);
  }
  if (!calm) {
    return uniform(name, shape, -0.25, 0.25);
  }
  return last ? uniform(name, shape, 0.3, 0.45)
              : uniform(name, shape, 1, 1.5) * uniform(name + " sign", shape, -1, 1).sign();
}

void fill_resnet(const Network& network, bool calm, bool bottleneck) {
  const auto has = [](const std::string& name, const char* part) { return name.find(part) != std::string::npos; };
  for (const auto& [name, tensor] : state_of(network)) {
    if ((has(name, "bn") || has(name, "downsample.1")) && !has(name, "running")) {
      const bool last =
          (name.starts_with("layer") && has(name, bottleneck ? ".bn3" : ".bn2")) || has(name, ".downsample.");
      at::Tensor(tensor).copy_(norm_weight(name, tensor.sizes(), calm, last));
    } else {
      at::Tensor(tensor).copy_(weight(name, tensor.sizes()));
    }
  }
}

void expect_gradients(const Network& network, const std::string& prefix, double tolerance) {
  for (const core::Parameter& parameter : network.parameters()) {
    const at::Tensor grad = parameter.tensor.grad();
    ASSERT_TRUE(grad.defined()) << parameter.name;
    expect_sample(grad, goldens()[prefix + parameter.name], tolerance, parameter.name);
    parameter.tensor.mutable_grad().reset();
  }
}

// manner: the set of weights, "loud" or "calm"; see make_networks.py.
void check_resnet(const std::string& name, const std::string& manner, at::ScalarType dtype) {
  SCOPED_TRACE(name + ", " + manner + ", " + c10::toString(dtype));
  const bool calm = manner == "calm";
  const auto network = models::make_network(name, {.classes = kClasses, .image_size = kSize});
  ASSERT_EQ(names_and_shapes(*network), goldens().text(name));
  network->to(at::kCPU, dtype);
  fill_resnet(*network, calm, name == "resnet50");
  const at::Tensor pixels = uniform("pixels", {kBatch, 3, kSize, kSize}, -2, 2).to(dtype);
  const at::Tensor target = below("classes", {kBatch}, kClasses);
  const std::string prefix = name + "." + manner + ".";
  for (const bool training : {false, true}) {
    const std::string mode = training ? "train." : "eval.";
    network->set_training(training);
    const at::Tensor logits = network->forward(pixels);
    const at::Tensor loss =
        ops::cross_entropy_sum(logits, target, 0.1) / ops::cross_entropy_normaliser(target).to(dtype);
    expect_near(logits, goldens()[prefix + mode + "logits"], tolerance(dtype), mode + "logits");
    expect_near(loss, goldens()[prefix + mode + "loss"], tolerance(dtype), mode + "loss");
    if (training != calm) {
      loss.backward();
      expect_gradients(*network, prefix + mode + "grad.", tolerance(dtype));
    }
  }
  for (const core::NamedTensor& buffer : network->buffers()) {
    expect_sample(buffer.tensor, goldens()[prefix + "after." + buffer.name], tolerance(dtype), buffer.name);
  }
}

TEST(GoldenNetworks, Resnet18) {
  check_resnet("resnet18", "loud", at::kDouble);
  check_resnet("resnet18", "calm", at::kFloat);
}

TEST(GoldenNetworks, Resnet34) {
  check_resnet("resnet34", "loud", at::kDouble);
  check_resnet("resnet34", "calm", at::kFloat);
}

TEST(GoldenNetworks, Resnet50) {
  check_resnet("resnet50", "loud", at::kDouble);
  check_resnet("resnet50", "calm", at::kFloat);
}

// rows: the number of rows per piece of the loss; 0: the whole loss at once, from logits.
void check_gpt(at::ScalarType dtype, std::int64_t rows, ops::AttentionKind attention) {
  SCOPED_TRACE(std::string(c10::toString(dtype)) + ", rows " + std::to_string(rows));
  models::GptOptions options;
  options.vocabulary = 61, options.context = 12, options.width = 32, options.layers = 3, options.heads = 4;
  options.open_head = rows > 0, options.attention = attention;
  const auto network = models::make_gpt(options);
  ASSERT_EQ(names_and_shapes(*network), goldens().text("gpt"));
  network->to(at::kCPU, dtype);
  for (const auto& [name, tensor] : state_of(*network)) {
    at::Tensor(tensor).copy_(weight(name, tensor.sizes()));
  }
  at::Tensor target = below("targets", {3, 10}, 61);
  target.slice(0, 0, 1).slice(1, 7).fill_(-100);
  core::TensorList values{below("tokens", {3, 10}, 61)};
  for (int segment = 0; segment < network->segments(); ++segment) {
    values = network->forward_segment(segment, std::move(values));
  }
  const at::Tensor hidden = values[0].flatten(0, 1);
  const at::Tensor sum = rows == 0 ? ops::cross_entropy_sum(hidden, target.flatten())
                                   : ops::linear_cross_entropy_sum(hidden, values.at(1), target.flatten(), rows);
  const at::Tensor loss = sum / target.ge(0).sum().to(dtype);
  if (rows == 0) {
    expect_near(values[0], goldens()["gpt.logits"], tolerance(dtype), "logits");
  }
  expect_near(loss, goldens()["gpt.loss"], tolerance(dtype), "loss");
  loss.backward();
  expect_gradients(*network, "gpt.grad.", tolerance(dtype));
}

TEST(GoldenNetworks, Gpt) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    check_gpt(dtype, 0, ops::AttentionKind::kFused);
    check_gpt(dtype, 7, ops::AttentionKind::kWritten);
  }
}

}  // namespace
}  // namespace stoker::golden

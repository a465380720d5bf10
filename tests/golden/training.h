// SPDX-License-Identifier: Apache-2.0
// The training of make_steps.py in C++, with train::Step: a small network with batch norm, a weighted and smoothed loss
// with a second term, clipping, averages. Used by steps_test and grad_scaler_test.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "golden/golden_file.h"
#include "stoker/models/builder.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/tasks/network_trainable.h"
#include "stoker/train/step.h"

namespace stoker::golden {

constexpr std::int64_t kRows = 10;
constexpr double kClip = 2.5, kEmaDecay = 0.4;

inline const GoldenFile& steps_file() {
  static const GoldenFile file("steps.safetensors");
  return file;
}

inline std::unique_ptr<models::Network> make_small(at::ScalarType dtype) {
  models::NetworkBuilder builder(0);
  builder.begin_segment("all");
  const auto conv1 = builder.conv("conv1", {.in = 2, .out = 4});
  const auto bn1 = builder.batch_norm("bn1", 4);
  const auto conv2 = builder.conv("conv2", {.in = 4, .out = 4, .stride = 2});
  const auto bn2 = builder.batch_norm("bn2", 4);
  const auto fc = builder.linear("fc", 36, 3);
  builder.end_segment([=](const at::Tensor& x) {
    const at::Tensor y = at::tanh(bn1(conv1(x)));
    return fc(at::tanh(bn2(conv2(y))).flatten(1));
  });
  auto network = builder.finish();
  network->to(at::kCPU, dtype);
  for (const core::Parameter& parameter : network->parameters()) {
    parameter.tensor.detach().copy_(weight(parameter.name, parameter.tensor.sizes()));
  }
  for (const core::NamedTensor& buffer : network->buffers()) {
    at::Tensor(buffer.tensor).copy_(weight(buffer.name, buffer.tensor.sizes()));
  }
  return network;
}

class SmallModel final : public tasks::NetworkTrainable {
 public:
  explicit SmallModel(at::ScalarType dtype)
      : NetworkTrainable(make_small(dtype)), class_weights_(at::tensor({0.5, 2.0, 1.25}, at::kDouble)) {}
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy", "squares"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    const at::Tensor counted = batch["y"].gt(0).sum().to(at::kDouble);
    return at::stack({ops::cross_entropy_normaliser(batch["y"], class_weights_), counted});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor counted = batch["y"].gt(0).to(outputs[0].scalar_type()).unsqueeze(1);
    return {{"cross_entropy", 1, ops::cross_entropy_sum(outputs[0], batch["y"], 0.1, class_weights_)},
            {"squares", 0.25, (outputs[0].square() * counted).sum()}};
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override {
    return {};
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override {
    return {};
  }

 private:
  at::Tensor class_weights_;
};

// The batch of this number.
inline core::Batch small_batch(int number, at::ScalarType dtype) {
  std::vector<std::int64_t> indices(kRows);
  core::Batch batch({}, std::move(indices));
  batch.set("x", uniform("x " + std::to_string(number), {kRows, 2, 6, 6}, -2, 2).to(dtype));
  batch.set("y", below("y " + std::to_string(number), {kRows}, 3));
  return batch;
}

// The optimizers by their names in make_steps.py.
inline optim::OptimizerOptions optimizer_options(const std::string& name) {
  if (name == "adamw") {
    return {.name = "adamw", .weight_decay = 0.05};
  }
  if (name == "adam") {
    return {.name = "adam", .weight_decay = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6};
  }
  const double momentum = name == "sgd" ? 0 : name == "nesterov" ? 0.8 : 0.9;
  return {.name = "sgd", .weight_decay = 0.05, .momentum = momentum, .nesterov = name == "nesterov"};
}

inline double peak_lr(const std::string& optimizer) { return optimizer.starts_with("adam") ? 0.02 : 0.1; }

struct Training {
  Training(const std::string& name, at::ScalarType dtype, std::int64_t its_microbatch = 0,
           const precision::GradScalerOptions& scaling = {.scaling = false})
      : model(dtype),
        optimizer(optim::make_optimizer(optimizer_options(name), model.parameters())),
        scaler(scaling, at::kCPU),
        ema(model.parameters(), model.norm_buffers(), kEmaDecay),
        step({.model = model, .optimizer = *optimizer, .scaler = scaler, .ranks = ranks, .ema = &ema}, {.clip = kClip}),
        microbatch(its_microbatch) {}

  void compute(const core::Batch& batch, std::int64_t number) { step.compute(batch, number, microbatch); }

  [[nodiscard]] double scalar(const std::string& name) const {
    const auto column = std::ranges::find(step.scalar_names(), name) - step.scalar_names().begin();
    return step.scalars()[column].item<double>();
  }
  [[nodiscard]] core::State state() const {
    core::State all;
    optimizer->save_state(all);
    ema.save_state(all);
    scaler.save_state(all);
    return all;
  }
  // In the order of make_steps.py's state(): weights, statistics, their averages, moments by their names in C++.
  [[nodiscard]] std::vector<core::NamedTensor> tensors(const std::vector<std::string>& moments) const {
    const core::State all = state();
    std::vector<core::NamedTensor> list;
    const auto add_parameters = [&](const std::string& prefix) {
      for (const core::Parameter& each : model.parameters()) {
        const std::string name = prefix + each.name;
        list.push_back({name, prefix.empty() ? each.tensor.detach() : all.tensor(name)});
      }
    };
    const auto add_statistics = [&](const std::string& prefix, const at::Tensor& flat) {
      std::int64_t offset = 0;
      for (const core::NamedTensor& each : model.buffers()) {
        list.push_back({prefix + each.name, flat.narrow(0, offset, each.tensor.numel())});
        offset += each.tensor.numel();
      }
    };
    add_parameters("");
    add_statistics("", model.norm_buffers().front());
    add_parameters("ema.");
    add_statistics("ema.", all.tensor("ema.norm_buffers.0"));
    for (const std::string& moment : moments) {
      add_parameters("optimizer." + moment + ".");
    }
    return list;
  }
  // golden: a row of make_steps.py's state().
  void expect(const at::Tensor& golden, double tolerance, const std::vector<std::string>& moments = {}) const {
    std::int64_t offset = 0;
    for (const auto& [name, tensor] : tensors(moments)) {
      expect_near(tensor.flatten(), golden.narrow(0, offset, tensor.numel()), tolerance, name);
      offset += tensor.numel();
    }
    EXPECT_EQ(offset, golden.numel());
  }

  SmallModel model;
  core::SingleRank ranks;
  std::unique_ptr<optim::Optimizer> optimizer;
  precision::GradScaler scaler;
  optim::Ema ema;
  train::Step step;
  std::int64_t microbatch;
};

}  // namespace stoker::golden

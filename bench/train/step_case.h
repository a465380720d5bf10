// SPDX-License-Identifier: Apache-2.0
// What the benches of the training step train: a model with its loss, one ready-made batch on the device, and how it is
// optimised. Used by step_bench. One thread.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/batch.h"
#include "stoker/optim/optimizer.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::bench {

struct CaseOptions {
  std::string model = "mlp";       // mlp, cnn, resnet18, resnet34, resnet50, gpt, gpt2
  std::int64_t batch = 0;          // samples; 0: the model's own
  std::int64_t size = 0;           // pixels a side, tokens of a gpt, inputs of an mlp; 0: the model's own
  std::int64_t width = 64;         // of an mlp's hidden layers
  std::string precision = "fp32";  // fp32, bf16, fp16
  bool channels_last = true;       // of images
  c10::Device device = c10::Device(c10::kCPU);
};

struct StepCase {
  CaseOptions options;  // with the model's own values put in
  std::unique_ptr<tasks::NetworkTrainable> model;
  core::Batch batch;
  optim::OptimizerOptions optimizer;  // as the recipes have it for this model
  double lr = 0;                      // so small that the weights go nowhere in a long measurement
  double label_smoothing = 0;
};

// mlp: 64-64-64-10 by default, float inputs, plain sgd; the perceptron that peers are measured on. cnn and resnets:
// uint8 images that each step normalises, Nesterov sgd, label smoothing 0.1. gpt: nanoGPT's
// network for a CPU on 65 characters, adamw. gpt2: the smallest of the published ones, all logits at once. Applies the
// policy of arithmetic that a plan has by default on the device, to the whole process. ConfigError for another model.
[[nodiscard]] StepCase make_case(CaseOptions options);

}  // namespace stoker::bench

// SPDX-License-Identifier: Apache-2.0
// The case that a benchmark of the training step trains: a model with its loss, one ready-made batch on the device, and
// the optimizer's options. Used by step_bench and step_worker. One thread.
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
  std::int64_t size = 0;           // image side in pixels, tokens of a gpt, inputs of an mlp; 0: the model's own
  std::int64_t width = 64;         // of an mlp's hidden layers
  std::string precision = "fp32";  // fp32, bf16, fp16
  bool channels_last = true;       // of images
  c10::Device device = c10::Device(c10::kCPU);
};

struct StepCase {
  CaseOptions options;  // with the model's own values filled in
  std::unique_ptr<tasks::NetworkTrainable> model;
  core::Batch batch;
  optim::OptimizerOptions optimizer;  // as in the recipe of this model
  double lr = 0;                      // so small that the weights hardly change in a long measurement
  double label_smoothing = 0;
};

// mlp: 64-64-64-10 by default, float inputs, plain sgd; the peers are measured with the same perceptron. cnn and
// resnets: uint8 images that each step normalises, Nesterov sgd, label smoothing 0.1. gpt: nanoGPT's network for a CPU
// on 65 characters, adamw. gpt2: the smallest published one, all logits at once. Applies the default arithmetic policy
// of a plan on this device to the whole process. ConfigError for another model.
[[nodiscard]] StepCase make_case(CaseOptions options);

}  // namespace stoker::bench

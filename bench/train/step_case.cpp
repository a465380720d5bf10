// SPDX-License-Identifier: Apache-2.0
#include "step_case.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "stoker/base/error.h"
#include "stoker/models/gpt.h"
#include "stoker/models/mlp.h"
#include "stoker/models/registry.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/precision/policy.h"
#include "stoker/tasks/image/classifier.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/text/model.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kClasses = 10;

// An mlp on numbers, like the Trainable of a user's program.
class VectorClassifier final : public tasks::NetworkTrainable {
 public:
  using NetworkTrainable::NetworkTrainable;
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override { return {batch["x"]}; }
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override {
    return ops::cross_entropy_normaliser(batch["target"]).reshape({1});
  }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override {
    return {{"cross_entropy", 1, ops::cross_entropy_sum(outputs.front(), batch["target"])}};
  }
  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList&, const core::Batch&) const override {
    return {};
  }
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>&) const override {
    return {};
  }
};

void put_default(std::int64_t& value, std::int64_t usual) { value = value > 0 ? value : usual; }

core::Batch empty_batch(std::int64_t samples) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    indices[static_cast<std::size_t>(i)] = i;
  }
  return {{0, 0}, std::move(indices)};
}

void make_mlp(StepCase& made) {
  CaseOptions& o = made.options;
  put_default(o.batch, 32);
  put_default(o.size, 64);
  // Its options describe images: one pixel with `size` channels.
  const models::ModelOptions shape{
      .classes = kClasses, .channels = static_cast<int>(o.size), .image_size = 1, .seed = 1};
  made.model = std::make_unique<VectorClassifier>(models::make_mlp(shape, o.width));
  made.batch = empty_batch(o.batch);
  made.batch.set("x", at::randn({o.batch, o.size}).to(o.device));
  made.batch.set("target", at::randint(kClasses, {o.batch}, at::kLong).to(o.device));
  made.optimizer = {.name = "sgd", .weight_decay = 0, .momentum = 0};
}

void make_image_model(StepCase& made) {
  CaseOptions& o = made.options;
  const bool cnn = o.model == "cnn";
  put_default(o.batch, cnn ? 128 : o.model == "resnet50" ? 32 : 64);
  put_default(o.size, cnn ? 32 : 64);
  const int pixels = static_cast<int>(o.size);
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = tasks::preprocessing(pixels, 3);
  classifier.channels_last = o.channels_last;
  classifier.label_smoothing = made.label_smoothing = 0.1;
  made.model = std::make_unique<tasks::ImageClassifier>(
      models::make_network(o.model, {.classes = kClasses, .channels = 3, .image_size = pixels, .seed = 1}),
      std::move(classifier));
  made.batch = empty_batch(o.batch);
  made.batch.set("image", at::randint(256, {o.batch, pixels, pixels, 3}, at::kByte).to(o.device));
  made.batch.set("target", at::randint(kClasses, {o.batch}, at::kLong).to(o.device));
  made.optimizer = {.name = "sgd", .weight_decay = cnn ? 5e-4 : 1e-4, .momentum = 0.9, .nesterov = true};
}

void make_gpt(StepCase& made) {
  CaseOptions& o = made.options;
  const bool gpt2 = o.model == "gpt2";
  put_default(o.batch, gpt2 ? 4 : 12);
  put_default(o.size, gpt2 ? 1024 : 64);
  models::GptOptions network = {.vocabulary = 65, .context = o.size, .seed = 1};
  if (gpt2) {
    network = {.vocabulary = 50'257, .context = o.size, .layers = 12, .heads = 12, .width = 768, .seed = 1};
  }
  made.model = std::make_unique<tasks::TextModel>(models::make_gpt(network), tasks::TextModelOptions{});
  made.batch = empty_batch(o.batch);
  made.batch.set("ids", at::randint(network.vocabulary, {o.batch, o.size}, at::kLong).to(o.device));
  made.batch.set("target", at::randint(network.vocabulary, {o.batch, o.size}, at::kLong).to(o.device));
  made.optimizer = {.name = "adamw", .weight_decay = 0.1, .beta2 = 0.99};
}

}  // namespace

StepCase make_case(CaseOptions options) {
  StepCase made;
  made.options = std::move(options);
  made.lr = 1e-6;
  const std::string& model = made.options.model;
  if (model == "mlp") {
    make_mlp(made);
  } else if (model == "gpt" || model == "gpt2") {
    make_gpt(made);
  } else if (model == "cnn" || model.starts_with("resnet")) {
    make_image_model(made);
  } else {
    fail<ConfigError>("bench.step", "no model \"{}\"; known: mlp, cnn, resnet18, resnet34, resnet50, gpt, gpt2", model);
  }
  precision::apply({.deterministic = made.options.device.is_cpu()});  // a plan's defaults: train/resolve.cpp
  made.model->to(made.options.device);
  made.model->set_training(true);
  return made;
}

}  // namespace stoker::bench

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/predict.h"

#include <ATen/ops/topk.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/precision/autocast.h"
#include "stoker/tasks/registry.h"

namespace stoker::job {
namespace {

core::Batch to_device(const core::Batch& batch, c10::Device device) {
  core::Batch moved(batch.position(), batch.indices());
  for (const core::Field& field : batch.fields()) {
    moved.set({field.name, field.values.to(device), field.layout, field.offsets});
  }
  return moved;
}

// On the CPU, without a gradient.
tasks::Answers ask(LoadedModel& loaded, const core::Batch& batch) {
  const at::ScalarType dtype = precision::autocast_dtype(loaded.card.precision);
  const bool mixed = dtype != at::kFloat;
  const c10::Device device = loaded.device();
  const precision::AutocastGuard autocast(device.type(), mixed ? dtype : at::kBFloat16, mixed);
  const core::Batch input = to_device(batch, device);
  tasks::Answers answers = loaded.model->answers(loaded.model->forward(loaded.model->inputs(input)));
  if (!answers.values.defined()) {
    fail<ConfigError>("job.predict", "{}: a model for {} that gives no answers to predict",
                      printable(loaded.checkpoint.native()), loaded.card.task);
  }
  answers.values = answers.values.to(at::kCPU, at::kDouble);
  return answers;
}

void fill(std::vector<Prediction>& predictions, const tasks::Answers& answers, int top_k) {
  if (answers.classes.empty()) {
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      predictions[i].value = answers.values.const_data_ptr<double>()[i];
    }
    return;
  }
  const auto guesses = std::clamp<std::int64_t>(top_k, 1, static_cast<std::int64_t>(answers.classes.size()));
  const auto [values, ids] = at::topk(answers.values, guesses, 1);
  const auto value = values.accessor<double, 2>();
  const auto id = ids.accessor<std::int64_t, 2>();
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    for (std::int64_t k = 0; k < guesses && predictions[i].sample.error.empty(); ++k) {
      predictions[i].guesses.push_back({answers.classes[static_cast<std::size_t>(id[row][k])], value[row][k]});
    }
  }
}

}  // namespace

std::unique_ptr<tasks::UnlabelledSource> open_unlabelled(const LoadedModel& loaded,
                                                         const std::vector<std::filesystem::path>& paths) {
  const tasks::TaskKind& kind = tasks::task_kind(loaded.card.task);
  if (!kind.open_unlabelled) {
    fail<ConfigError>("job.predict", "{}: is a model for {}, which predicts nothing from files",
                      printable(loaded.checkpoint.native()), kind.name);
  }
  std::unique_ptr<tasks::UnlabelledSource> source;
  read_card(loaded.checkpoint, [&] { source = kind.open_unlabelled(loaded.info, paths); });
  return source;
}

void predict(LoadedModel& loaded, tasks::UnlabelledSource& source, int top_k, std::int64_t batch,
             const std::function<void(const Prediction&)>& take) {
  const c10::InferenceMode inference;
  loaded.model->set_training(false);
  while (std::optional<tasks::UnlabelledBatch> given = source.next(batch)) {
    std::vector<Prediction> predictions;
    for (tasks::UnlabelledSample& sample : given->samples) {
      predictions.push_back({std::move(sample), {}, {}});
    }
    fill(predictions, ask(loaded, given->batch), top_k);
    std::ranges::for_each(predictions, take);
  }
}

}  // namespace stoker::job

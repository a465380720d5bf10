// SPDX-License-Identifier: Apache-2.0
// From a request to everything an image run stands on: data, plan, model, loaders. The part of Job that knows pictures.
// One thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

#include "stoker/core/batch_source.h"
#include "stoker/data/image_folder.h"
#include "stoker/job/loaded_model.h"
#include "stoker/job/request.h"
#include "stoker/tasks/image_classifier.h"
#include "stoker/train/plan.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

using Say = std::function<void(const std::string&)>;

struct ImageSetup {
  data::ImageFolder folder;
  train::Plan plan;
  c10::Device device = c10::Device(c10::kCPU);
  tasks::ImagePreprocessing pixels;
  std::unique_ptr<tasks::ImageClassifier> model;
  std::vector<std::string> notes;  // what became of given weights, and other remarks for people

  // Batches of a split on the device, beginning at a position.
  [[nodiscard]] std::unique_ptr<core::BatchSource> training_source(core::Position start) const;
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_source(const data::ImageSplit& split) const;
  // The dtype that forward passes run in.
  [[nodiscard]] at::ScalarType autocast_dtype() const;
  [[nodiscard]] ModelCard card() const;
};

// saved: the plan to repeat, with its measured values; null: resolve and measure.
[[nodiscard]] ImageSetup set_up_images(const Request& request, const train::Plan* saved, const Say& say);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// The defaults of image classification that depend on the model and on the images, each with its reason.
// train::resolve() puts them over the defaults that are the same in every run. No state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/core/plan_row.h"
#include "stoker/data/folder/image_folder.h"

namespace stoker::tasks {

// Facts about the images, from the headers of a few samples spread over the training split.
struct ImageSetFacts {
  int width = 0, height = 0;  // median, pixels
  int channels = 3;           // 1 if all checked images are grey
};
// DataError if none of the checked images can be read.
[[nodiscard]] ImageSetFacts look_at_images(const data::ImageSplit& split);

// The set options that decide the recipe; empty: not set.
struct ImageRecipeRequest {
  std::string model, optimizer;
  int image_size = 0;  // 0: not set
  std::int64_t batch = 0;
  bool weights = false;  // fine-tuning
  bool cuda = false;
  bool decodes_fast = false;
  std::int64_t memory = 0;         // bytes of free RAM
  std::int64_t device_memory = 0;  // with cuda: bytes of GPU memory that are free for data; 0: none
};
// Defaults with reasons: model, image_size, augment, batch, epochs, optimizer, lr, schedule, ...
[[nodiscard]] std::vector<core::PlanRow> image_recipe(const ImageRecipeRequest& question, const ImageSetFacts& images,
                                                      std::int64_t train_samples, std::int64_t val_samples = 0);

// Whether the model with this name has batch norm unless norm= replaces it, and so couples the samples of a batch.
[[nodiscard]] bool couples_samples(const std::string& model);

// 1 or 3: the input channels of the network's first layer. ResNets always take colour, so that published weights fit
// grey images.
[[nodiscard]] int network_channels(const std::string& model, const ImageSetFacts& images);

}  // namespace stoker::tasks

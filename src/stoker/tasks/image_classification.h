// SPDX-License-Identifier: Apache-2.0
// Image classification: from a folder of labelled pictures to its classes, recipe, model and batches.
// Used by job; one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/augment/image_policy.h"
#include "stoker/core/plan_row.h"
#include "stoker/data/image_folder.h"
#include "stoker/data/image_loader.h"
#include "stoker/tasks/image_classifier.h"

namespace stoker::tasks {

// What the pictures look like, from the headers of a few spread over the training split.
struct PictureFacts {
  int width = 0, height = 0;  // median, pixels
  int channels = 3;           // 1 if every picture looked at is grey
};
// DataError if none of them can be read.
[[nodiscard]] PictureFacts look_at_pictures(const data::ImageSplit& split);

// What was asked for that decides the recipe; empty: not asked.
struct RecipeQuestion {
  std::string model, optimizer;
  int image_size = 0;    // 0: not asked
  bool weights = false;  // fine-tuning
  bool cuda = false;
  std::int64_t batch = 0;  // 0: not asked
};
// Defaults with reasons: model, image_size, augment, batch, epochs, optimizer, lr, schedule, ...
[[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeQuestion& question, const PictureFacts& pictures,
                                                std::int64_t train_samples);

// How training pictures are changed, by the name of plan.augment, and how evaluation sees them.
[[nodiscard]] augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels);
[[nodiscard]] augment::ImagePolicy evaluation_policy(const ImagePreprocessing& pixels);
// Size, margin and normalisation for a network input of image_size pixels.
[[nodiscard]] ImagePreprocessing preprocessing(int image_size, int channels);

// "none": undefined; "balanced": N / (classes * N_c), 0 for a class without samples; or the listed numbers.
// ConfigError if their number is not that of the classes, or all are 0.
[[nodiscard]] at::Tensor class_weights(const std::string& text, const data::ImageSplit& split, std::size_t classes);

// Whether a model of that name has batch norm.
[[nodiscard]] bool couples_samples(const std::string& model);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// How a classifier sees images: which crop for training and evaluation, the normalisation.
// The defaults stand in image_recipe.h; how a crop is drawn and carried out, in augment/. Used by image_task; no state.
#pragma once

#include <string>

#include "stoker/augment/image_policy.h"
#include "stoker/data/folder/image_folder.h"
#include "stoker/tasks/image/classifier.h"

namespace stoker::tasks {

// Up to this side, in pixels, a network sees images in their own size by default, and evaluation sees them whole.
inline constexpr int kSmallImage = 96;

// How training images are changed, by the name of plan.augment, and how evaluation sees them.
[[nodiscard]] augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels);
[[nodiscard]] augment::ImagePolicy evaluation_policy(const ImagePreprocessing& pixels);
// Size, margin and normalisation for a network input of image_size pixels.
[[nodiscard]] ImagePreprocessing preprocessing(int image_size, int channels);

}  // namespace stoker::tasks

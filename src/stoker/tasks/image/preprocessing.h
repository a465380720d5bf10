// SPDX-License-Identifier: Apache-2.0
// The preprocessing of a classifier: the crop for training and evaluation, the normalisation. The defaults are in
// image/recipe.h; crops are drawn and executed in augment/. Used by the image task; no state.
#pragma once

#include <string>

#include "stoker/augment/image_policy.h"
#include "stoker/data/folder/image_folder.h"
#include "stoker/tasks/image/classifier.h"

namespace stoker::tasks {

// Up to this side, in pixels, a network gets images at their own size by default, and evaluation uses whole images.
inline constexpr int kSmallImage = 96;

// The changes to training images, by the name of plan.augment, and the preprocessing of evaluation.
[[nodiscard]] augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels);
[[nodiscard]] augment::ImagePolicy evaluation_policy(const ImagePreprocessing& pixels);
// Size, margin and normalisation for a network input of image_size pixels.
[[nodiscard]] ImagePreprocessing preprocessing(int image_size, int channels);

}  // namespace stoker::tasks

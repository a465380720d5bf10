// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/preprocessing.h"

#include <algorithm>

namespace stoker::tasks {
augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels) {
  augment::ImagePolicy policy;
  policy.out_width = policy.out_height = pixels.image_size;
  policy.resize = pixels.resize;
  policy.interpolation = pixels.interpolation;
  policy.flip = augment.ends_with("flip");
  policy.crop = augment.starts_with("resized_crop") ? augment::Crop::kRandomResized
                : augment.starts_with("pad_crop")   ? augment::Crop::kPad
                                                    : augment::Crop::kResizeCentre;
  policy.pad = std::max(1, pixels.image_size / 16);  // the option crop_pad has priority
  policy.min_scale = 0.08;                           // Szegedy et al. 2014, and torchvision
  return policy;
}

augment::ImagePolicy evaluation_policy(const ImagePreprocessing& pixels) { return training_policy("none", pixels); }

ImagePreprocessing preprocessing(int image_size, int channels) {
  ImagePreprocessing result;
  result.channels = channels;
  result.image_size = image_size;
  // 256 for 224 is torchvision's evaluation margin; small images are used whole.
  result.resize = image_size <= kSmallImage ? image_size : (image_size * 8 + 6) / 7;
  if (channels == 1) {
    result.mean = {0.449};  // the mean of ImageNet's three
    result.std = {0.226};
  } else {
    result.mean = {0.485, 0.456, 0.406};  // ImageNet, as in torchvision
    result.std = {0.229, 0.224, 0.225};
  }
  return result;
}

}  // namespace stoker::tasks

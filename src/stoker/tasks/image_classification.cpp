// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image_classification.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <charconv>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image_classification";

}  // namespace

augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels) {
  augment::ImagePolicy policy;
  policy.out_width = policy.out_height = pixels.image_size;
  policy.resize = pixels.resize;
  policy.flip = augment.ends_with("flip");
  policy.crop = augment.starts_with("resized_crop") ? augment::Crop::kRandomResized
                : augment.starts_with("pad_crop")   ? augment::Crop::kPad
                                                    : augment::Crop::kResizeCentre;
  policy.pad = std::max(1, pixels.image_size / 8);  // 4 at 32 pixels, as in He et al. 2016
  policy.min_scale = 0.08;                          // Szegedy et al. 2014, and torchvision
  return policy;
}

augment::ImagePolicy evaluation_policy(const ImagePreprocessing& pixels) { return training_policy("none", pixels); }

ImagePreprocessing preprocessing(int image_size, int channels) {
  ImagePreprocessing result;
  result.channels = channels;
  result.image_size = image_size;
  // 256 for 224 is torchvision's evaluation margin; small pictures are seen whole.
  result.resize = image_size <= kSmallPicture ? image_size : (image_size * 8 + 6) / 7;
  if (channels == 1) {
    result.mean = {0.449};  // the mean of ImageNet's three
    result.std = {0.226};
  } else {
    result.mean = {0.485, 0.456, 0.406};  // ImageNet, as in torchvision
    result.std = {0.229, 0.224, 0.225};
  }
  return result;
}

at::Tensor class_weights(const std::string& text, const data::ImageSplit& split, std::size_t classes) {
  if (text == "none") {
    return {};
  }
  std::vector<double> weights(classes, 0);
  if (text == "balanced") {
    for (const std::int64_t label : split.labels) {
      weights.at(static_cast<std::size_t>(label)) += 1;
    }
    for (double& weight : weights) {
      weight = weight > 0 ? static_cast<double>(split.size()) / (static_cast<double>(classes) * weight) : 0;
    }
    return at::tensor(weights, at::kDouble).to(at::kFloat);
  }
  std::vector<double> listed;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    double value = 0;
    std::from_chars(text.data() + start, text.data() + comma, value);
    listed.push_back(value);
    start = comma + 1;
  }
  if (listed.size() != classes || std::ranges::none_of(listed, [](double w) { return w > 0; })) {
    fail<ConfigError>(kWhere, "class_weights has {} numbers for {} classes; give one for each, not all 0",
                      listed.size(), classes);
  }
  return at::tensor(listed, at::kDouble).to(at::kFloat);
}

}  // namespace stoker::tasks

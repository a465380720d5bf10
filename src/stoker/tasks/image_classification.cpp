// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image_classification.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <charconv>

#include "stoker/base/error.h"
#include "stoker/data/image_decode.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image_classification";
constexpr int kSmallPicture = 96;  // up to here the network sees pictures in their own size

// Rows of a recipe, in order; later ones do not override earlier ones.
class Rows {
 public:
  template <typename T>
  void add(std::string key, const T& value, std::string reason) {
    rows_.push_back({std::move(key), fmt::format("{}", value), core::Origin::kDefault, std::move(reason)});
  }
  std::vector<core::PlanRow> take() { return std::move(rows_); }

 private:
  std::vector<core::PlanRow> rows_;
};

int default_image_size(const PictureFacts& pictures) {
  const int side = std::min(pictures.width, pictures.height);
  return side <= kSmallPicture ? std::max(side, 8) : 224;
}

std::string default_augment(const PictureFacts& pictures, int image_size) {
  if (image_size > kSmallPicture) {
    return "resized_crop_flip";
  }
  return pictures.channels == 1 ? "pad_crop" : "pad_crop_flip";
}

// The largest power of two up to limit that leaves at least 100 steps an epoch, and at least 16.
std::int64_t default_batch(std::int64_t samples, std::int64_t limit) {
  std::int64_t batch = 16;
  while (batch * 2 <= limit && samples / (batch * 2) >= 100) {
    batch *= 2;
  }
  return batch;
}

void add_sgd(Rows& rows, double lr, int lr_batch, double weight_decay, const char* schedule, double warmup,
             std::string why) {
  rows.add("optimizer", "sgd", why);
  rows.add("lr", lr, why);
  rows.add("lr_batch", lr_batch, "the batch that lr is stated for");
  rows.add("weight_decay", weight_decay, why);
  rows.add("schedule", schedule, why);
  rows.add("warmup", warmup, "a share of the run");
}

// Learning rates of adam and adamw do not carry over from sgd.
void add_adaptive(Rows& rows, const std::string& optimizer, bool weights) {
  rows.add("optimizer", optimizer, "adaptive steps");
  rows.add("lr", weights ? 1e-4 : 1e-3,
           weights ? "small steps from given weights" : "the usual first choice for adaptive steps");
  rows.add("lr_batch", 64, "the batch that lr is stated for");
  rows.add("weight_decay", optimizer == "adamw" ? 0.01 : 0.0, "");
  rows.add("schedule", "cosine", "");
  rows.add("warmup", 0.05, "a share of the run");
}

}  // namespace

PictureFacts look_at_pictures(const data::ImageSplit& split) {
  constexpr std::int64_t kLooks = 32;
  std::vector<int> widths, heights;
  PictureFacts facts;
  facts.channels = 1;
  std::vector<std::byte> bytes;
  std::string first_error;
  const std::int64_t looks = std::min(kLooks, split.size());
  for (std::int64_t look = 0; look < looks; ++look) {
    const std::int64_t index = split.samples[static_cast<std::size_t>(look * split.size() / looks)];
    try {
      split.source->read(index, bytes);
      const data::ImageInfo info = data::probe_image(bytes, {}, split.source->name(index));
      widths.push_back(info.width);
      heights.push_back(info.height);
      facts.channels = std::max(facts.channels, info.channels == 1 ? 1 : 3);
    } catch (const DataError& error) {
      first_error = first_error.empty() ? error.what() : first_error;  // training reports it if the sample is drawn
    }
  }
  if (widths.empty()) {
    fail<DataError>(kWhere, "none of {} pictures looked at can be read; the first: {}", looks, first_error);
  }
  std::ranges::nth_element(widths, widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2));
  std::ranges::nth_element(heights, heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 2));
  facts.width = widths[widths.size() / 2];
  facts.height = heights[heights.size() / 2];
  return facts;
}

std::vector<core::PlanRow> recipe(const RecipeQuestion& question, const PictureFacts& pictures,
                                  std::int64_t train_samples) {
  Rows rows;
  const int image_size = question.image_size > 0 ? question.image_size : default_image_size(pictures);
  const bool small = image_size <= kSmallPicture;
  const std::string model = !question.model.empty() ? question.model : small ? "cnn" : "resnet18";
  rows.add("model", model, small ? "small pictures" : "photographs");
  rows.add("image_size", image_size,
           fmt::format("the pictures are {} x {} pixels (median)", pictures.width, pictures.height));
  rows.add("augment", default_augment(pictures, image_size),
           pictures.channels == 1 && small ? "grey pictures may be characters, which do not mirror"
                                           : "the usual for such pictures");
  const std::int64_t batch = default_batch(train_samples, model == "cnn" ? 512 : question.cuda ? 256 : 64);
  rows.add("batch", batch, "at least 100 steps an epoch where the data allows it");
  const bool adaptive = question.optimizer == "adam" || question.optimizer == "adamw" || model == "mlp";
  if (adaptive) {
    add_adaptive(rows, question.optimizer.empty() ? "adamw" : question.optimizer, question.weights);
  } else if (model == "cnn") {
    add_sgd(rows, question.weights ? 0.02 : 0.2, 256, 5e-4, "one_cycle", 0.2, "found on CIFAR-10");
  } else {
    add_sgd(rows, question.weights ? 0.01 : 0.1, 256, 1e-4, "cosine", 0.05,
            question.weights ? "small steps from given weights" : "He et al. 2016, with cosine decay");
  }
  rows.add("epochs", model == "cnn" ? 12 : question.weights ? 10 : 30, "");
  rows.add("label_smoothing", model == "mlp" ? 0.0 : 0.1, "");
  return rows.take();
}

augment::ImagePolicy training_policy(const std::string& augment, const ImagePreprocessing& pixels) {
  augment::ImagePolicy policy;
  policy.out_width = policy.out_height = pixels.image_size;
  policy.resize = pixels.resize;
  policy.flip = augment.ends_with("flip");
  policy.crop = augment.starts_with("resized_crop") ? augment::Crop::kRandomResized
                : augment.starts_with("pad_crop")   ? augment::Crop::kPad
                                                    : augment::Crop::kResizeCentre;
  policy.pad = std::max(1, pixels.image_size / 8);
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

bool couples_samples(const std::string& model) { return model != "mlp"; }

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/recipe.h"

#include <algorithm>
#include <cmath>

#include "stoker/augment/mix.h"
#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/recipe_rows.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image";

int default_image_size(const ImageSetFacts& images) {
  const int side = std::min(images.width, images.height);
  return side <= kSmallImage ? std::max(side, 8) : 224;
}

std::string default_augment(const ImageSetFacts& images, int image_size) {
  if (image_size > kSmallImage) {
    return "resized_crop_flip";
  }
  return images.channels == 1 ? "pad_crop" : "pad_crop_flip";
}

// The largest power of two up to limit that leaves at least 100 steps per epoch; at least 16.
std::int64_t default_batch(std::int64_t samples, std::int64_t limit) {
  std::int64_t batch = 16;
  while (batch * 2 <= limit && samples / (batch * 2) >= 100) {
    batch *= 2;
  }
  return batch;
}

// Values of a recipe for sgd; lr is stated for a batch of 256.
struct Sgd {
  double lr, weight_decay;
  const char* schedule;
  double warmup;
};
constexpr Sgd kCnn{.lr = 0.4, .weight_decay = 5e-4, .schedule = "one_cycle", .warmup = 0.2};
constexpr Sgd kCnnFromWeights{.lr = 0.02, .weight_decay = 5e-4, .schedule = "one_cycle", .warmup = 0.2};
constexpr Sgd kResNet{.lr = 0.1, .weight_decay = 1e-4, .schedule = "cosine", .warmup = 0.05};
constexpr Sgd kResNetFromWeights{.lr = 0.01, .weight_decay = 1e-4, .schedule = "cosine", .warmup = 0.05};

void add_sgd(RecipeRows& rows, const Sgd& values, const char* why) {
  rows.add("optimizer", "sgd", why);
  rows.add("lr", values.lr, why);
  rows.add("lr_batch", 256, "the batch that lr is stated for");
  rows.add("weight_decay", values.weight_decay, why);
  rows.add("schedule", values.schedule, why);
  rows.add("warmup", values.warmup, "a share of the run");
}

// Learning rates of adam and adamw differ from those of sgd.
void add_adaptive(RecipeRows& rows, const std::string& optimizer, bool weights) {
  rows.add("optimizer", optimizer, "adaptive steps");
  rows.add("lr", weights ? 1e-4 : 1e-3, weights ? "small steps for fine-tuning" : "usual for adaptive steps");
  rows.add("lr_batch", 64, "the batch that lr is stated for");
  rows.add("weight_decay", optimizer == "adamw" ? 0.01 : 0.0,
           optimizer == "adamw" ? "decoupled" : "L2 distorts adaptive steps");
  rows.add("schedule", "cosine", "down to 0 at the end");
  rows.add("warmup", 0.05, "a share of the run");
}

// A quarter of the memory at most: the rest is for the run and for the page cache of images that do not fit.
void add_cache(RecipeRows& rows, const ImageRecipeRequest& question, const ImageSetFacts& images, int channels,
               std::int64_t samples) {
  constexpr double kShare = 0.25, kMegabyte = 1e6, kSpread = 1.25;  // the mean size may be above the median
  if (question.decodes_fast) {
    rows.add("cache", 0, "decode=fast decodes only the crop of each image");
    return;
  }
  const double bytes = kSpread * static_cast<double>(samples) * images.width * images.height * channels;
  const double room = kShare * static_cast<double>(question.memory);
  const bool fits = bytes <= room;
  rows.add("cache", fits ? static_cast<std::int64_t>(std::ceil(bytes / kMegabyte)) : 0,
           fmt::format("all decoded images take about {:.0f} MB; a quarter of the free memory is {:.0f} MB",
                       bytes / kMegabyte, std::max(room, 0.0) / kMegabyte));
}

// The limit in bytes of resident::ResidentSource.
void add_resident(RecipeRows& rows, const ImageRecipeRequest& question, int image_size, int channels,
                  std::int64_t samples) {
  constexpr double kShare = 0.25, kMegabyte = 1e6;
  if (!question.cuda) {
    rows.add("resident", "off", "no GPU; cache keeps images in RAM");
    return;
  }
  if (question.device_memory <= 0) {
    rows.add("resident", "off", "the GPU has no free memory");
    return;
  }
  if (image_size > kSmallImage) {
    rows.add("resident", "off", "photographs are cropped to different sizes");
    return;
  }
  const double bytes = static_cast<double>(samples) * image_size * image_size * channels;
  const double room = kShare * static_cast<double>(question.device_memory);
  rows.add("resident", bytes <= room ? "auto" : "off",
           fmt::format("training images take {:.0f} MB on the GPU; a quarter of its free memory is {:.0f} MB",
                       bytes / kMegabyte, room / kMegabyte));
}

}  // namespace

ImageSetFacts look_at_images(const data::ImageSplit& split) {
  constexpr std::int64_t kLooks = 32;
  std::vector<int> widths, heights;
  ImageSetFacts facts;
  facts.channels = 1;
  std::vector<std::byte> bytes;
  std::string first_error;
  const std::int64_t looks = std::min(kLooks, split.size());
  for (std::int64_t look = 0; look < looks; ++look) {
    const std::int64_t index = split.samples[look * split.size() / looks];
    try {
      split.source->read(index, bytes);
      const data::ImageInfo info = data::probe_image(bytes, {}, split.source->name(index));
      widths.push_back(info.width);
      heights.push_back(info.height);
      facts.channels = std::max(facts.channels, info.channels == 1 ? 1 : 3);
    } catch (const DataError& error) {
      first_error = first_error.empty() ? error.what() : first_error;  // training reports it if the sample is used
    }
  }
  if (widths.empty()) {
    fail<DataError>(kWhere, "none of {} checked images can be read; the first error: {}", looks, first_error);
  }
  std::ranges::nth_element(widths, widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2));
  std::ranges::nth_element(heights, heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 2));
  facts.width = widths[widths.size() / 2];
  facts.height = heights[heights.size() / 2];
  return facts;
}

std::vector<core::PlanRow> image_recipe(const ImageRecipeRequest& question, const ImageSetFacts& images,
                                        std::int64_t train_samples, std::int64_t val_samples) {
  RecipeRows rows;
  const int image_size = question.image_size > 0 ? question.image_size : default_image_size(images);
  const bool small = image_size <= kSmallImage;
  const std::string model = !question.model.empty() ? question.model : small ? "cnn" : "resnet18";
  const bool is_cnn = models::is_width_of("cnn", model);
  rows.add("model", model, small ? "small images" : "photographs");
  rows.add("image_size", image_size,
           fmt::format("the images are {} x {} pixels (median)", images.width, images.height));
  rows.add("augment", default_augment(images, image_size),
           images.channels == 1 && small ? "grey images may be characters, which must not be flipped"
                                         : "usual for such images");
  add_cache(rows, question, images, network_channels(model, images), train_samples + val_samples);
  add_resident(rows, question, image_size, network_channels(model, images), train_samples);
  const std::int64_t batch = default_batch(train_samples, is_cnn ? 512 : question.cuda ? 256 : 64);
  rows.add("batch", batch, "at least 100 steps per epoch where the data allows it");
  rows.add("crop_pad", std::max(1, image_size / 16), "2 at 32 pixels, as in airbench (Jordan 2024)");
  rows.add("mix_block",
           augment::mix_block(std::clamp<std::int64_t>(train_samples, 1, question.batch > 0 ? question.batch : batch)),
           "the largest up to 16 that divides the batch");
  const bool adaptive = question.optimizer == "adam" || question.optimizer == "adamw" || model == "mlp";
  if (adaptive) {
    add_adaptive(rows, question.optimizer.empty() ? "adamw" : question.optimizer, question.weights);
  } else if (is_cnn) {
    add_sgd(rows, question.weights ? kCnnFromWeights : kCnn, "tuned on CIFAR-10");
  } else {
    add_sgd(rows, question.weights ? kResNetFromWeights : kResNet,
            question.weights ? "small steps for fine-tuning" : "He et al. 2016, with cosine decay");
  }
  const int from_scratch = !is_cnn ? 30 : train_samples >= 20'000 ? 16 : 12;  // cnn: for small images
  rows.add("epochs", question.weights ? 10 : from_scratch,
           question.weights ? "fine-tuning needs few epochs" : "long enough for the schedule to reach its end");
  rows.add("label_smoothing", model == "mlp" ? 0.0 : 0.1, "Szegedy et al. 2016, for convolutional networks");
  return std::move(rows.rows);
}

bool couples_samples(const std::string& model) { return model != "mlp"; }

int network_channels(const std::string& model, const ImageSetFacts& images) {
  return model.starts_with("resnet") ? 3 : images.channels;
}

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/data/load/image_loader_resident.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/image/augment.h"
#include "stoker/tasks/image/caches.h"
#include "stoker/tasks/image/exhibits.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/image/reading.h"
#include "stoker/tasks/rank_part.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image";

class ReadyImages final : public WithImages<ReadyTask> {
 public:
  ReadyImages(ImageFiles files, ImageOptions options, ImageCard card)
      : WithImages(std::move(files)), options_(std::move(options)), card_(std::move(card)) {}

  [[nodiscard]] std::unique_ptr<Model> make_model(const ModelRequest& request) const override {
    ClassifierOptions classifier;
    classifier.label_smoothing = options_.label_smoothing;
    classifier.class_weights =
        class_weights(options_.class_weights, files_.folder().train.labels.counts(files_.folder().classes.size()));
    return make_classifier(request, card_, std::move(classifier));
  }
  [[nodiscard]] BatchChecks checks() const override {
    return {.input = "image",
            .target = "target",
            .classes = static_cast<std::int64_t>(card_.classes.size()),
            .channels = card_.pixels.channels};
  }
  [[nodiscard]] std::int64_t sample_flops(const Model& model) const override {
    return model.flops({card_.pixels.channels, card_.pixels.image_size, card_.pixels.image_size});
  }
  void check_same(const nlohmann::json& card, const std::string& run) const override {
    const std::vector<std::string> classes = image_card(card).classes;
    if (classes != files_.folder().classes) {
      fail<CheckpointError>(kWhere,
                            "the data now has {} classes, but the run was started with {}{}; {} cannot continue; train "
                            "again with weights={}",
                            files_.folder().classes.size(), classes.size(),
                            classes.size() == files_.folder().classes.size() ? " with other names" : "", run, run);
    }
  }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    const augment::Mix mix = mix_of(options_, request.batch);
    if (mix.on() && request.batch % (std::int64_t{request.ranks} * mix.block) != 0) {  // blocks that span ranks
      const BatchRequest whole = whole_batches(request);
      return rank_part(std::make_unique<data::ImageLoader>(training_options(whole)), request);
    }
    return std::make_unique<data::ImageLoader>(training_options(request));
  }
  [[nodiscard]] std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const override {
    if (options_.resident == "off" || request.ranks > 1) {
      return nullptr;
    }
    data::ImageLoaderOptions options = training_options(request);
    if (!data::why_not_resident(options.policy, options.mix).empty()) {
      return nullptr;
    }
    return std::make_shared<data::ResidentSplit>(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    data::ImageLoaderOptions options = loader_options(files_.of(split), request);
    options.policy = evaluation_policy(card_.pixels);
    if (options.bad.on_bad == data::OnBad::kReplace) {
      options.bad.on_bad = data::OnBad::kSkip;  // metrics use readable images, each once
    }
    options.batch = std::min(request.batch, options.split.size());
    options.shuffle = false;
    return std::make_unique<data::ImageLoader>(std::move(options));
  }
  [[nodiscard]] core::LoadTime load_time_per_sample() const override {
    constexpr int kSamples = 16;
    return data::estimate_load_time(files_.folder().train, card_.pixels.channels, policy(), kSamples);
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return files_.folder().train.source->name(index);
  }
  [[nodiscard]] std::vector<Exhibit> exhibits(Split split, const at::Tensor& verdicts,
                                              std::span<const std::int64_t> indices) const override {
    return image_exhibits(files_.of(split), verdicts, indices, card_);
  }
  [[nodiscard]] nlohmann::json card() const override { return to_json(card_); }

 private:
  [[nodiscard]] augment::ImagePolicy policy() const {
    augment::ImagePolicy policy = training_policy(options_.augment, card_.pixels);
    apply_augment(options_, policy);
    policy.shrink = decodes_fast(options_);
    return policy;
  }
  [[nodiscard]] data::ImageLoaderOptions training_options(const BatchRequest& request) const {
    data::ImageLoaderOptions options = loader_options(files_.folder().train, request);
    options.policy = policy();
    options.rows = caches_.rows_of(options.split.source, options_, options.policy.crop);
    options.mix = mix_of(options_, request.batch);
    options.batch = request.batch;
    options.shuffle = options_.shuffle;
    options.order = training_order(options_, files_.folder().train.labels, request);
    return options;
  }
  [[nodiscard]] data::ImageLoaderOptions loader_options(const data::ImageSplit& split,
                                                        const BatchRequest& request) const {
    data::ImageLoaderOptions options;
    options.split = split;
    options.channels = card_.pixels.channels;
    options.seed = request.seed;
    options.drop_tail = request.drop_tail;
    options.threads = request.threads;
    options.cores = request.cores;
    options.pinned = request.pinned;
    options.once = request.once;
    options.start = request.start;
    options.rank = request.rank;
    options.ranks = request.ranks;
    options.bad.on_bad = options_.on_bad == "raise"  ? data::OnBad::kRaise
                         : options_.on_bad == "skip" ? data::OnBad::kSkip
                                                     : data::OnBad::kReplace;
    options.bad.budget = options_.bad_budget;
    options.limits = limits_of(options_);
    options.bad.listener = request.bad_samples;
    options.store = caches_.store_of(split.source, options_);
    options.known_bad = caches_.known_bad_of(split.source, options_, card_.pixels.channels);
    return options;
  }
  ImageOptions options_;
  ImageCard card_;
  mutable ImageCaches caches_;
};

}  // namespace

std::unique_ptr<ReadyTask> ready_images(ImageFiles files, ImageOptions options, ImageCard card) {
  return std::make_unique<ReadyImages>(std::move(files), std::move(options), std::move(card));
}

std::unique_ptr<Model> make_classifier(const ModelRequest& request, const ImageCard& card,
                                       ClassifierOptions classifier) {
  models::ModelOptions options;
  options.classes = static_cast<int>(card.classes.size());
  options.channels = card.pixels.channels;
  options.image_size = card.pixels.image_size;
  options.seed = request.seed;
  options.norm = card.norm;
  classifier.preprocessing = card.pixels;
  classifier.channels_last = request.channels_last;
  classifier.classes = card.classes;
  return std::make_unique<ImageClassifier>(models::make_network(request.name, options), std::move(classifier));
}

}  // namespace stoker::tasks

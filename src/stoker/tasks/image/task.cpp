// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/task.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/load/image_loader_resident.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/image/augment.h"
#include "stoker/tasks/image/caches.h"
#include "stoker/tasks/image/classification.h"
#include "stoker/tasks/image/exhibits.h"
#include "stoker/tasks/image/prediction.h"
#include "stoker/tasks/image/reading.h"
#include "stoker/tasks/image/recipe.h"
#include "stoker/tasks/sampling.h"
#include "stoker/tasks/task_values.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image";

nlohmann::json to_json(const ImageCard& card) {
  std::vector<std::string> classes;
  for (const std::string& name : card.classes) {
    classes.push_back(byte_name_to_text(name));
  }
  return {{"classes", classes},
          {"preprocessing",
           {{"channels", card.pixels.channels},
            {"image_size", card.pixels.image_size},
            {"resize", card.pixels.resize},
            {"mean", card.pixels.mean},
            {"std", card.pixels.std},
            {"interpolation", name_of(card.pixels.interpolation)}}}};
}

std::unique_ptr<NetworkTrainable> make_classifier(const ModelRequest& request, const ImageCard& card,
                                                  ClassifierOptions classifier) {
  models::ModelOptions options;
  options.classes = static_cast<int>(card.classes.size());
  options.channels = card.pixels.channels;
  options.image_size = card.pixels.image_size;
  options.seed = request.seed;
  classifier.preprocessing = card.pixels;
  classifier.channels_last = request.channels_last;
  classifier.classes = card.classes;
  return std::make_unique<ImageClassifier>(models::make_network(request.name, options), std::move(classifier));
}

// The split with its labels in the model's numbering.
void relabel(data::ImageSplit& split, const std::vector<std::string>& from, const std::vector<std::string>& to) {
  std::vector<std::int64_t> ids;
  for (const std::string& name : from) {
    const auto found = std::ranges::find(to, name);
    if (found == to.end()) {
      std::vector<std::string> known;
      for (const std::string& each : to) {
        known.push_back(printable(each));
      }
      fail<DataError>(kWhere, "class \"{}\" is unknown to the model, which knows {}", printable(name),
                      fmt::join(known, ", "));
    }
    ids.push_back(found - to.begin());
  }
  split.labels = split.labels.renamed(ids);
}

// A file given as data is a tar file; an image is the likeliest mistake.
const std::filesystem::path& not_a_image(const std::filesystem::path& path) {
  static constexpr std::array kImages{".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".npy", ".tif", ".tiff"};
  std::string ending = path.extension().native();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::error_code error;
  if (std::ranges::find(kImages, ending) != kImages.end() && std::filesystem::is_regular_file(path, error)) {
    fail<DataError>(kWhere, "{}: is a single image; give the folder that has a folder of images for each class",
                    printable(path.native()));
  }
  return path;
}

// Of a run's plan, what decides which images can be had: its model is judged on the same.
core::TaskValues settings_of_judging(const core::TaskValues& own) {
  core::TaskValues kept;
  for (const char* key : {"strict", "on_bad", "bad_budget", "retry_bad"}) {
    if (const auto found = own.find(key); found != own.end()) {
      kept.insert(*found);
    }
  }
  return kept;
}

// Whether the order of the indices is that of the classes, as class folders make it.
bool class_by_class(const data::ImageFolder& folder) {
  std::size_t runs = 0;
  folder.train.labels.each_run([&](auto, auto, auto) { ++runs; });
  return runs == folder.classes.size();
}

class ImageTask final : public Task {
 public:
  ImageTask(const std::filesystem::path& path, const OpenOptions& options)
      : folder_(data::open_image_folder(not_a_image(path),
                                        {.val = options.whole ? 0 : options.val,
                                         .seed = options.seed,
                                         .classes_meant = options.named || options.adopts},
                                        options.progress)),
        own_(options.adopts ? settings_of_judging(options.own) : core::TaskValues{}) {}

  [[nodiscard]] std::int64_t size(Split split) const override { return of(split).size(); }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}, {} classes", folder_.layout, folder_.classes.size());
  }
  [[nodiscard]] std::string details() const override {
    return fmt::format("images of {} x {} pixels (median), {}\n{}\n", images().width, images().height,
                       images().channels == 1 ? "grey" : "colour", class_list(folder_.classes));
  }
  [[nodiscard]] const std::vector<std::string>& findings() const override { return folder_.findings; }

  [[nodiscard]] std::vector<core::PlanRow> recipe(const Asked& asked) const override {
    RecipeQuestion question;
    question.model = asked.model;
    question.optimizer = asked.optimizer;
    const auto size = asked.own.find("image_size");
    question.image_size = size == asked.own.end() ? 0 : static_cast<int>(whole_value(asked.own, "image_size"));
    question.batch = asked.batch;
    question.weights = asked.weights;
    question.cuda = asked.cuda;
    question.memory = asked.memory;
    question.device_memory = asked.device_memory;
    question.decodes_fast = text_or(asked.own, "decode", "exact") == "fast";
    return tasks::recipe(question, images(), folder_.train.size(), folder_.val.size());
  }
  [[nodiscard]] bool couples_samples(const std::string& model) const override { return tasks::couples_samples(model); }

  void settle(const std::string& model, const core::TaskValues& own) override {
    own_ = own;
    if (!shuffles(own_) && class_by_class(folder_)) {
      folder_.findings.emplace_back(
          "shuffle=off: images come in the order of their paths, here class by class, and a network forgets a class "
          "while it sees the others; images of all classes in one folder, with a labels.csv, come in another order");
    }
    card_.classes = folder_.classes;
    card_.pixels = preprocessing(static_cast<int>(whole_value(own, "image_size")), network_channels(model, images()));
    card_.pixels.interpolation = interpolation_of(own);
  }
  void adopt(const nlohmann::json& card) override {
    card_ = image_card(card);
    for (data::ImageSplit* split : {&folder_.train, &folder_.val, &folder_.test}) {
      relabel(*split, folder_.classes, card_.classes);
    }
  }
  void check_same(const nlohmann::json& card, const std::string& run) const override {
    const std::vector<std::string> classes = image_card(card).classes;
    if (classes != folder_.classes) {
      fail<CheckpointError>(
          kWhere,
          "the data has {} classes now, the run was started with {}{}: {} cannot go on; train anew with weights={}",
          folder_.classes.size(), classes.size(), classes.size() == folder_.classes.size() ? " of other names" : "",
          run, run);
    }
  }

  [[nodiscard]] std::unique_ptr<NetworkTrainable> make_model(const ModelRequest& request) const override {
    ClassifierOptions classifier;
    classifier.label_smoothing = real_value(own_, "label_smoothing");
    classifier.class_weights =
        class_weights(text_value(own_, "class_weights"), folder_.train.labels.counts(folder_.classes.size()));
    return make_classifier(request, card_, std::move(classifier));
  }
  [[nodiscard]] BatchChecks checks() const override {
    return {"image", "target", static_cast<std::int64_t>(card_.classes.size()), card_.pixels.channels};
  }
  [[nodiscard]] std::int64_t sample_flops(const NetworkTrainable& model) const override {
    return models::flops(model.network(), {card_.pixels.channels, card_.pixels.image_size, card_.pixels.image_size});
  }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    return std::make_unique<data::ImageLoader>(training_options(request));
  }
  [[nodiscard]] std::shared_ptr<const augment::ResidentImages> resident_images(
      const BatchRequest& request) const override {
    if (text_or(own_, "resident", "off") == "off") {
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
    data::ImageLoaderOptions options = loader_options(of(split), request);
    options.policy = evaluation_policy(card_.pixels);
    if (options.bad.on_bad == data::OnBad::kReplace) {
      options.bad.on_bad = data::OnBad::kSkip;  // figures are of what is there, each sample once
    }
    options.batch = std::min(request.batch, options.split.size());
    options.shuffle = false;
    return std::make_unique<data::ImageLoader>(std::move(options));
  }
  [[nodiscard]] core::LoadTime load_time_per_sample() const override {
    constexpr int kSamples = 16;
    return data::estimate_load_time(folder_.train, card_.pixels.channels, policy(), kSamples);
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override { return folder_.train.source->name(index); }
  [[nodiscard]] std::vector<Exhibit> exhibits(Split split, const at::Tensor& verdicts,
                                              std::span<const std::int64_t> indices) const override {
    return image_exhibits(of(split), verdicts, indices, card_);
  }
  [[nodiscard]] nlohmann::json card() const override { return to_json(card_); }

 private:
  [[nodiscard]] augment::ImagePolicy policy() const {
    augment::ImagePolicy policy = training_policy(text_value(own_, "augment"), card_.pixels);
    apply_augment_settings(own_, policy);
    policy.shrink = decodes_fast(own_);
    return policy;
  }
  [[nodiscard]] const data::ImageSplit& of(Split split) const {
    return split == Split::kTrain ? folder_.train : split == Split::kVal ? folder_.val : folder_.test;
  }
  [[nodiscard]] const ImageSetFacts& images() const {
    if (!images_) {
      images_ = look_at_images(folder_.train);
    }
    return *images_;
  }
  [[nodiscard]] data::ImageLoaderOptions training_options(const BatchRequest& request) const {
    data::ImageLoaderOptions options = loader_options(folder_.train, request);
    options.policy = policy();
    options.mix = mix_of(own_, request.batch);
    options.batch = request.batch;
    options.shuffle = shuffles(own_);
    options.order = training_order(own_, folder_.train.labels, request);
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
    options.bad.on_bad = data::OnBad::kReplace;
    if (own_.contains("on_bad")) {  // else a checkpoint is judged that lies in no run: its card has no plan
      const std::string& on_bad = text_value(own_, "on_bad");
      options.bad.on_bad = on_bad == "raise"  ? data::OnBad::kRaise
                           : on_bad == "skip" ? data::OnBad::kSkip
                                              : data::OnBad::kReplace;
      options.bad.budget = real_value(own_, "bad_budget");
    }
    options.limits = limits_of(own_);
    options.bad.listener = request.bad_samples;
    options.store = caches_.store_of(split.source, own_);
    options.known_bad = caches_.known_bad_of(split.source, own_, card_.pixels.channels);
    return options;
  }
  data::ImageFolder folder_;
  core::TaskValues own_;
  mutable std::optional<ImageSetFacts> images_;  // read once they are asked for
  mutable ImageCaches caches_;
  ImageCard card_;
};

}  // namespace

ImageCard image_card(const nlohmann::json& json) {
  ImageCard card;
  for (const auto& name : json.at("classes")) {
    const std::optional<std::string> bytes = byte_name_from_text(name.get<std::string>());
    if (!bytes) {
      fail<CheckpointError>(kWhere, "has a damaged class name: {}", name.dump());
    }
    card.classes.push_back(*bytes);
  }
  const auto& pixels = json.at("preprocessing");
  card.pixels.channels = pixels.at("channels").get<int>();
  card.pixels.image_size = pixels.at("image_size").get<int>();
  card.pixels.resize = pixels.at("resize").get<int>();
  card.pixels.mean = pixels.at("mean").get<std::vector<double>>();
  card.pixels.std = pixels.at("std").get<std::vector<double>>();
  const auto interpolation = interpolation_from(pixels.value("interpolation", "bilinear"));  // older cards lack it
  const auto channels = static_cast<std::size_t>(card.pixels.channels);
  if (card.classes.size() < 2 || (channels != 1 && channels != 3) || card.pixels.mean.size() != channels ||
      card.pixels.std.size() != channels || card.pixels.image_size < 1 || card.pixels.resize < card.pixels.image_size ||
      !interpolation) {
    fail<CheckpointError>(kWhere, "classes or preprocessing contradict themselves");
  }
  card.pixels.interpolation = *interpolation;
  return card;
}

TaskKind image_classification() {
  TaskKind kind;
  kind.name = "image_classification";
  kind.text = "labelled images: class folders, split folders, tar files of these, or a labels.csv";
  kind.settings = {
      whole_setting("image_size", 4, 4096, "the images' own up to 96, else 224", "pixels a side"),
      choice_setting("augment", {"none", "flip", "pad_crop", "pad_crop_flip", "resized_crop", "resized_crop_flip"},
                     "by the size and colour of the images", "random changes to training images"),
      label_smoothing_setting(),
      class_weights_setting(),
      shuffle_setting(),
      sampling_setting(),
      whole_setting("cache", 0, 1'000'000, "all that fit into a quarter of the free memory",
                    "MB of images that stay decoded in memory; 0: none"),
      choice_setting("resident", {"auto", "off"}, "auto where a GPU has room for small images",
                     "after the first epoch training images lie on the GPU, which makes the batches, the same ones;"
                     " with augment=none, flip, pad_crop or pad_crop_flip and nothing beyond"),
      choice_setting("on_bad", {"replace", "skip", "raise"}, "replace",
                     "images that cannot be had: others in their place, batches without them, or an end of the run"),
      real_setting("bad_budget", 0, 1, "0.001", "share of a split that may be bad; one image may in any case"),
      flag_setting("retry_bad", "off", "try images again that an earlier run found bad and that are unchanged"),
  };
  const std::vector<core::TaskSetting> more = augment_settings();
  kind.settings.insert(kind.settings.begin() + 2, more.begin(), more.end());  // after augment
  const std::vector<core::TaskSetting> reading = reading_settings();
  kind.settings.insert(kind.settings.begin() + 1, reading.begin(), reading.end());  // after image_size
  for (const models::ModelInfo& model : models::known_models()) {
    kind.models.push_back(model.name);
  }
  kind.recognises = [](const std::filesystem::path&) { return true; };  // folders and tar files: what is left
  kind.open = [](const std::filesystem::path& path, const OpenOptions& options) {
    return std::make_unique<ImageTask>(path, options);
  };
  kind.describe_card = [](const nlohmann::json& json) {
    const ImageCard card = image_card(json);
    return fmt::format("input {} x {} pixels, {} channels\n{}\n", card.pixels.image_size, card.pixels.image_size,
                       card.pixels.channels, class_list(card.classes));
  };
  kind.restore = [](const ModelRequest& request, const nlohmann::json& card) {
    return make_classifier(request, image_card(card), {});
  };
  kind.open_unlabelled = unlabelled_images;
  return kind;
}

}  // namespace stoker::tasks

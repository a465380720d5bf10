// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/data.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/image/options.h"
#include "stoker/tasks/image/preprocessing.h"
#include "stoker/tasks/image/reading.h"
#include "stoker/tasks/image/task.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image";
constexpr const char* kNorm = "norm";  // the option

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
      fail<DataError>(kWhere, "the model does not know class \"{}\"; it knows {}", printable(name),
                      fmt::join(known, ", "));
    }
    ids.push_back(found - to.begin());
  }
  split.labels = split.labels.renamed(ids);
}

// Data that is a file is a tar file; a single image is the most likely mistake.
const std::filesystem::path& not_an_image(const std::filesystem::path& path) {
  static constexpr std::array kImages{".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".npy", ".tif", ".tiff"};
  std::string ending = path.extension().native();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::error_code error;
  if (std::ranges::find(kImages, ending) != kImages.end() && std::filesystem::is_regular_file(path, error)) {
    fail<DataError>(kWhere, "{}: is a single image; give the folder that contains one folder of images per class",
                    printable(path.native()));
  }
  return path;
}

// Whether samples are ordered by class, as in class folders.
bool class_by_class(const data::ImageFolder& folder) {
  std::size_t runs = 0;
  folder.train.labels.each_run([&](auto, auto, auto) { ++runs; });
  return runs == folder.classes.size();
}

// The values of a run's plan that decide which images are readable: its model is evaluated on the same images.
ImageOptions options_of_evaluation(const core::TaskValues& own) {
  ImageOptions options;
  for (const char* key : {"strict", "on_bad", "bad_budget", "retry_bad"}) {
    if (const auto found = own.find(key); found != own.end()) {
      image_options().set(options, key, found->second);
    }
  }
  return options;
}

class OpenImages final : public WithImages<OpenData> {
 public:
  OpenImages(const std::filesystem::path& path, const OpenOptions& options)
      : WithImages(ImageFiles(data::open_image_folder(not_an_image(path),
                                                      {.val = options.whole ? 0 : options.val,
                                                       .seed = options.seed,
                                                       .classes_meant = options.named || options.adopts},
                                                      options.progress))),
        own_(options.own) {}

  [[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeRequest& request) const override {
    ImageOptions given;
    image_options().overlay(given, request.own);
    ImageRecipeRequest question;
    question.model = request.model;
    question.optimizer = request.optimizer;
    question.image_size = static_cast<int>(given.image_size);
    question.batch = request.batch;
    question.weights = request.weights;
    question.cuda = request.cuda;
    question.memory = request.memory;
    question.device_memory = request.device_memory;
    question.decodes_fast = given.decode == "fast";
    return image_recipe(question, files_.facts(), size(Split::kTrain), size(Split::kVal));
  }
  [[nodiscard]] bool couples_samples(const std::string& model) const override {
    const auto norm = own_.find(kNorm);
    return tasks::couples_samples(model) && (norm == own_.end() || norm->second == "batch");
  }

  [[nodiscard]] std::unique_ptr<ReadyTask> settle(const std::string& model, const core::TaskValues& own) && override {
    core::TaskValues values = own;
    values.try_emplace(kNorm, "batch");  // a plan from before the option
    const ImageOptions options = image_options().parse(values);
    check_sampling(options);
    if (!options.shuffle && class_by_class(files_.folder())) {
      files_.folder().findings.emplace_back(
          "shuffle=off: images are read in path order, which is class by class here; a network forgets a class "
          "while it trains on the others; for a mixed order put all images in one "
          "folder with a labels.csv");
    }
    ImageCard card;
    card.classes = files_.folder().classes;
    card.pixels = preprocessing(static_cast<int>(options.image_size), network_channels(model, files_.facts()));
    card.pixels.interpolation = interpolation_of(options);
    card.norm = conv_norm_from(options.norm).value();  // the table of options allows only these names
    return ready_images(std::move(files_), options, std::move(card));
  }
  [[nodiscard]] std::unique_ptr<ReadyTask> adopt(const nlohmann::json& json) && override {
    ImageCard card = image_card(json);
    data::ImageFolder& folder = files_.folder();
    for (data::ImageSplit* split : {&folder.train, &folder.val, &folder.test}) {
      relabel(*split, folder.classes, card.classes);
    }
    return ready_images(std::move(files_), options_of_evaluation(own_), std::move(card));
  }

 private:
  core::TaskValues own_;
};

}  // namespace

const ImageSetFacts& ImageFiles::facts() const {
  if (!facts_) {
    facts_ = look_at_images(folder_.train);
  }
  return *facts_;
}

std::string ImageFiles::describe() const {
  return fmt::format("{}, {} classes", folder_.layout, folder_.classes.size());
}

std::string ImageFiles::details() const {
  return fmt::format("images of {} x {} pixels (median), {}\n{}\n", facts().width, facts().height,
                     facts().channels == 1 ? "grey" : "colour", class_list(folder_.classes));
}

std::unique_ptr<OpenData> open_images(const std::filesystem::path& path, const OpenOptions& options) {
  return std::make_unique<OpenImages>(path, options);
}

}  // namespace stoker::tasks

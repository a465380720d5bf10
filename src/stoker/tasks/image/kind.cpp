// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/kind.h"

#include "stoker/base/fmt.h"
#include "stoker/models/registry.h"
#include "stoker/tasks/class_weights.h"
#include "stoker/tasks/image/data.h"
#include "stoker/tasks/image/options.h"
#include "stoker/tasks/image/prediction.h"
#include "stoker/tasks/image/task.h"

namespace stoker::tasks {
namespace {

TaskInfo info() {
  TaskInfo info;
  info.name = "image_classification";
  info.help = "labelled images: class folders, split folders, tar files of these, or a labels.csv";
  info.options = image_options().options();
  for (const models::ModelInfo& model : models::known_models()) {
    info.models.push_back(model.name);
  }
  return info;
}

class ImageKind final : public TaskKind {
 public:
  ImageKind() : TaskKind(tasks::info()) {}

  // Folders and tar files that no other kind recognises.
  [[nodiscard]] bool recognises(const std::filesystem::path&) const override { return true; }
  [[nodiscard]] std::unique_ptr<OpenData> open(const std::filesystem::path& data,
                                               const OpenOptions& options) const override {
    return open_images(data, options);
  }
  [[nodiscard]] std::string describe_card(const nlohmann::json& json) const override {
    const ImageCard card = image_card(json);
    return fmt::format("input {} x {} pixels, {} channels\n{}\n", card.pixels.image_size, card.pixels.image_size,
                       card.pixels.channels, class_list(card.classes));
  }
  [[nodiscard]] std::unique_ptr<Model> restore(const ModelRequest& request, const nlohmann::json& card) const override {
    return make_classifier(request, image_card(card), {});
  }
  [[nodiscard]] std::unique_ptr<UnlabelledSource> open_unlabelled(
      const nlohmann::json& card, const std::vector<std::filesystem::path>& files) const override {
    return unlabelled_images(card, files);
  }
};

}  // namespace

std::unique_ptr<TaskKind> image_classification() { return std::make_unique<ImageKind>(); }

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// A folder of labelled images before there is a plan, and what both of its phases share. Used by the kind of task.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "stoker/data/folder/image_folder.h"
#include "stoker/tasks/image/recipe.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

// The files, and facts about their images, which are read on first use.
class ImageFiles {
 public:
  explicit ImageFiles(data::ImageFolder folder) : folder_(std::move(folder)) {}
  [[nodiscard]] data::ImageFolder& folder() { return folder_; }
  [[nodiscard]] const data::ImageFolder& folder() const { return folder_; }
  [[nodiscard]] const data::ImageSplit& of(Split split) const {
    return split == Split::kTrain ? folder_.train : split == Split::kVal ? folder_.val : folder_.test;
  }
  [[nodiscard]] const ImageSetFacts& facts() const;
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string details() const;

 private:
  data::ImageFolder folder_;
  mutable std::optional<ImageSetFacts> facts_;
};

// The part of a phase that depends on the files.
template <typename Phase>
class WithImages : public Phase {
 public:
  explicit WithImages(ImageFiles files) : files_(std::move(files)) {}
  [[nodiscard]] std::int64_t size(Split split) const final { return files_.of(split).size(); }
  [[nodiscard]] std::string describe() const final { return files_.describe(); }
  [[nodiscard]] std::string details() const final { return files_.details(); }
  [[nodiscard]] const std::vector<std::string>& findings() const final { return files_.folder().findings; }

 protected:
  ImageFiles files_;
};

// DataError if the data is not images in class folders, tar files or a table of labels.
[[nodiscard]] std::unique_ptr<OpenData> open_images(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// How accumulation changes accuracy: networks with and without batch norm are trained on real images with one step of
// 32, one step of 2 x 16, and two steps of 16. Behind `stoker bench tips --accuracy`. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/data/folder/image_folder.h"

namespace stoker::study {

struct AccuracyOptions {
  std::int64_t epochs = 3;
  int seeds = 3;
  int intra_op = 0;                                  // threads per operator; 0: one per core that this process may use
  std::string device = "cpu";                        // as for device::choose_device()
  std::function<void(const std::string&)> say = {};  // first the expected duration, then a line after each training
  std::function<bool()> stop = {};
};

struct ScheduleAccuracy {
  std::string model;             // "resnet34-slim", "resnet34-slim-no-norm"
  std::string schedule;          // "32 x 1", "16 x 2", "16 x 1"
  std::vector<double> accuracy;  // on the test split, one per seed
};

// The images to train on: a folder with a test split, as for `stoker train`. Keeps at most `most` images of each split,
// spread evenly. ConfigError without a test split, for more than ten classes and for fewer than 32 images; DataError as
// data::open_image_folder().
[[nodiscard]] data::ImageFolder accuracy_images(const std::filesystem::path& folder, std::int64_t most);

// The finished trainings; fewer than all if stop ended the rest.
[[nodiscard]] std::vector<ScheduleAccuracy> accumulation_accuracy(const data::ImageFolder& images,
                                                                  const AccuracyOptions& options);

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// What accumulation does to what is learnt: a network with batch norm and one without, trained on real images with
// one step of 32, one of 2 x 16, and two of 16. Behind `stoker bench tips --accuracy`. One thread.
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
  int intra_op = 0;                                  // threads of an operator; 0: as many as this process may use cores
  std::string device = "cpu";                        // as device::choose_device() takes it
  std::function<void(const std::string&)> say = {};  // told beforehand how long it takes, and after each training
  std::function<bool()> stop = {};
};

struct ScheduleAccuracy {
  std::string model;             // "resnet34-slim", "resnet34-slim-no-norm"
  std::string schedule;          // "32 x 1", "16 x 2", "16 x 1"
  std::vector<double> accuracy;  // on the test split, one a seed
};

// The images to train on: a folder with a test split, as `stoker train` takes it, of which most (spread evenly) are
// kept in each split. ConfigError without a test split, for more than ten classes, and for fewer than a batch of 32;
// DataError as data::open_image_folder().
[[nodiscard]] data::ImageFolder accuracy_images(const std::filesystem::path& folder, std::int64_t most);

// What was trained to its end, also where stop ended the rest.
[[nodiscard]] std::vector<ScheduleAccuracy> accumulation_accuracy(const data::ImageFolder& images,
                                                                  const AccuracyOptions& options);

}  // namespace stoker::study

// SPDX-License-Identifier: Apache-2.0
// What accumulation does to what is learnt: a network with batch norm and one without, trained on real pictures with
// one step of 32, one of 2 x 16, and two of 16. Behind `stoker bench tips --accuracy`. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stoker::study {

struct AccuracyOptions {
  std::filesystem::path data;    // a folder of labelled pictures with a test split, as `stoker train` takes it
  std::int64_t pictures = 5000;  // of the train split, and at most so many of the test split
  std::int64_t epochs = 3;
  int seeds = 3;
  std::string device = "cpu";                        // as device::choose_device() takes it
  std::function<void(const std::string&)> say = {};  // told beforehand how long it takes, and after each training
  std::function<bool()> stop = {};
};

struct ScheduleAccuracy {
  std::string model;             // "resnet34-slim", "resnet34-slim-no-norm"
  std::string schedule;          // "32 x 1", "16 x 2", "16 x 1"
  std::vector<double> accuracy;  // on the test split, one a seed
};

[[nodiscard]] std::vector<ScheduleAccuracy> accumulation_accuracy(const AccuracyOptions& options);

}  // namespace stoker::study

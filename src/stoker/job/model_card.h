// SPDX-License-Identifier: Apache-2.0
// What a checkpoint says about itself besides tensors, its info.json: model, classes, preprocessing, where in the run
// it was made. Filled by ImageSetup::card() and Session::checkpoint(), read by whoever loads a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/tasks/image_classification.h"

namespace stoker::job {

struct ModelCard {
  std::string model;
  std::vector<std::string> classes;
  tasks::ImagePreprocessing pixels;
  std::string precision = "fp32";
  std::string layout = "channels_last";
  std::int64_t step = 0, epoch = 0;
  std::int64_t train_samples = 0;  // of the data it was trained on
  std::string metric;              // "accuracy"; of the validation split
  double metric_value = 0;         // NaN: not evaluated
};
[[nodiscard]] nlohmann::json to_json(const ModelCard& card);
// checkpoint: its folder, for messages. CheckpointError that names what is missing or of the wrong type.
[[nodiscard]] ModelCard card_from_json(const nlohmann::json& json, const std::filesystem::path& checkpoint);

}  // namespace stoker::job

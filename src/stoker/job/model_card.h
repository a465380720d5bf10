// SPDX-License-Identifier: Apache-2.0
// The description of a checkpoint besides its tensors, its info.json: model, classes, preprocessing, position in the
// run. Filled by Setup::card() and Session::checkpoint(), read by everything that loads a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stoker::job {

struct ModelCard {
  std::string task = "image_classification";  // decides the rest of info.json
  std::string model;
  std::string precision = "fp32";
  std::string layout = "channels_last";
  std::int64_t step = 0;
  std::int64_t epoch = 0;          // of the step, from 1 as in all texts for people
  std::int64_t train_samples = 0;  // of the training data
  std::string metric;              // "accuracy"; of the validation split
  double metric_value = 0;         // NaN: not evaluated
};
// own: members that the task adds (ReadyTask::card()).
[[nodiscard]] nlohmann::json to_json(const ModelCard& card, const nlohmann::json& own);
// checkpoint: its folder, for messages. CheckpointError that names what is missing or of the wrong type.
[[nodiscard]] ModelCard card_from_json(const nlohmann::json& json, const std::filesystem::path& checkpoint);

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
// What a checkpoint says about itself besides tensors, its info.json: model, classes, preprocessing, where in the run
// it was made. Filled by Setup::card() and Session::checkpoint(), read by whoever loads a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stoker::job {

struct ModelCard {
  std::string task = "image_classification";  // what the rest of info.json is about
  std::string model;
  std::string precision = "fp32";
  std::string layout = "channels_last";
  std::int64_t step = 0;
  std::int64_t epoch = 0;          // that the step was of, from 1 as everywhere that people read
  std::int64_t train_samples = 0;  // of the data it was trained on
  std::string metric;              // "accuracy"; of the validation split
  double metric_value = 0;         // NaN: not evaluated
};
// own: what the task adds (Task::card()), as further members.
[[nodiscard]] nlohmann::json to_json(const ModelCard& card, const nlohmann::json& own);
// checkpoint: its folder, for messages. CheckpointError that names what is missing or of the wrong type.
[[nodiscard]] ModelCard card_from_json(const nlohmann::json& json, const std::filesystem::path& checkpoint);

}  // namespace stoker::job

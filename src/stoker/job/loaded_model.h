// SPDX-License-Identifier: Apache-2.0
// A trained classifier brought back from disk, with the classes and the preprocessing it was trained with: what eval,
// predict and export work on. One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/tasks/image_classifier.h"

namespace stoker::job {

// What a checkpoint says about itself, besides tensors; info.json in a checkpoint.
struct ModelCard {
  std::string model;
  std::vector<std::string> classes;
  tasks::ImagePreprocessing pixels;
  std::string precision = "fp32";
  std::string layout = "channels_last";
  std::int64_t step = 0, epoch = 0;
  std::int64_t train_samples = 0;  // of the data it was trained on
  std::string metric;              // "accuracy"
  double metric_value = 0;         // NaN: not evaluated
};
[[nodiscard]] nlohmann::json to_json(const ModelCard& card);
// CheckpointError that names what is missing or of the wrong type.
[[nodiscard]] ModelCard card_from_json(const nlohmann::json& json);

struct LoadedModel {
  ModelCard card;
  std::unique_ptr<tasks::ImageClassifier> model;  // in evaluation mode, on the device
  std::filesystem::path checkpoint;               // the folder it came from
  [[nodiscard]] c10::Device device() const { return model->parameters().front().tensor.device(); }
};

// The checkpoint that path means: a checkpoint folder as it is; of a run folder "best", else "last", or the one named
// ("best" is the last one where nothing was validated).
// CheckpointError if there is none.
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& path, const std::string& which = "");

[[nodiscard]] LoadedModel load_model(const std::filesystem::path& path, c10::Device device,
                                     const std::string& which = "");
// For a process that does nothing else: device "auto", "cpu", "cuda" or "cuda:N" (DeviceError if it is not there), and
// operators on no more threads than the quota has cores.
[[nodiscard]] LoadedModel open_model(const std::filesystem::path& path, const std::string& device,
                                     const std::string& which = "");

}  // namespace stoker::job

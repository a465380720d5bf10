// SPDX-License-Identifier: Apache-2.0
// A trained classifier brought back from disk, with the classes and the preprocessing it was trained with: what eval,
// predict and export work on. One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "stoker/job/model_card.h"
#include "stoker/tasks/image_classifier.h"

namespace stoker::job {

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

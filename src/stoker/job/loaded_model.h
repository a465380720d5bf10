// SPDX-License-Identifier: Apache-2.0
// A trained model loaded from disk, with everything on its card (classes, preprocessing): used by eval, predict and
// export. One thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "stoker/io/checkpoint/json_box.h"
#include "stoker/job/model_card.h"
#include "stoker/tasks/task.h"

namespace stoker::job {

struct LoadedModel {
  ModelCard card;
  io::JsonBox info;                     // the whole card, with the task's members
  std::unique_ptr<tasks::Model> model;  // in evaluation mode, on the device
  std::filesystem::path checkpoint;     // its folder
  [[nodiscard]] c10::Device device() const { return model->parameters().front().tensor.device(); }
};

// Runs use(), which reads the task's members of a card. Its errors for a damaged card become a CheckpointError that
// names the file.
void read_card(const std::filesystem::path& checkpoint, const std::function<void()>& use);

// The checkpoint at a path: a checkpoint folder itself; of a run folder "best", else "last", or the given one ("best"
// is "last" if there was no validation). CheckpointError if there is none.
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& path, const std::string& which = "");

// Puts the weights and buffers of a checkpoint into a model, in place. CheckpointError, with the model's name and the
// checkpoint's, if one is missing or left over.
void put_weights(tasks::Model& model, const std::map<std::string, at::Tensor>& weights, const std::string& name,
                 const std::filesystem::path& checkpoint);

[[nodiscard]] LoadedModel load_model(const std::filesystem::path& path, c10::Device device,
                                     const std::string& which = "");
// The same on device "auto", "cpu", "cuda" or "cuda:N" (DeviceError if it is unavailable), with operators on at most as
// many threads as the quota has cores. The number of threads stays: a caller whose process continues holds a
// precision::ProcessSwitches.
[[nodiscard]] LoadedModel open_model(const std::filesystem::path& path, const std::string& device,
                                     const std::string& which = "");

}  // namespace stoker::job

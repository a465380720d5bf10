// SPDX-License-Identifier: Apache-2.0
// A trained model brought back from disk, with all that its card says (classes, preprocessing): what eval, predict and
// export work on. One thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "stoker/io/checkpoint/json_box.h"
#include "stoker/job/model_card.h"
#include "stoker/tasks/task.h"

namespace stoker::job {

struct LoadedModel {
  ModelCard card;
  io::JsonBox info;                                // the whole card, the task's members included
  std::unique_ptr<tasks::Model> model;  // in evaluation mode, on the device
  std::filesystem::path checkpoint;                // the folder it came from
  [[nodiscard]] c10::Device device() const { return model->parameters().front().tensor.device(); }
};

// Runs use(), which reads the task's members of a card; what it throws for a damaged one becomes a CheckpointError that
// names the file.
void read_card(const std::filesystem::path& checkpoint, const std::function<void()>& use);

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

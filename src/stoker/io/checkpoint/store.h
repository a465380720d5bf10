// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disk: each is a folder that is complete or absent, even if the process is killed or the disk is full.
// Saved by the training loop, read by resume, eval, predict and export. One thread and one process at a time may save.
//
// The folder contains weights.safetensors, state.safetensors, info.json, state.json and manifest.json. The manifest has
// the size and XXH3-128 of every file and tensor and a checksum of itself (docs/formats.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/core/stateful.h"
#include "stoker/io/checkpoint/json_box.h"

namespace stoker::io {

struct Checkpoint {
  std::map<std::string, at::Tensor> weights;  // parameters and buffers for use (EMA if the run has it)
  core::State state;                          // for resuming
  JsonBox info;                               // description of the model (job/model_card.h): opaque here
};

class CheckpointStore {
 public:
  // folder: runs/x/checkpoints; created at the first save.
  explicit CheckpointStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Writes to a hidden folder beside the old one, syncs, reads back and verifies, exchanges it with the old one in one
  // rename, and removes the old one. IoError if the disk refuses: the previous checkpoint still exists then, and the
  // name refers to it or, if only the last sync failed, to the complete new one.
  // name: letters, digits, '-' and '_', e.g. "last", "best"; else ConfigError.
  void save(const std::string& name, const Checkpoint& checkpoint);
  // CheckpointError with the file and the damage.
  [[nodiscard]] Checkpoint load(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  // The folder that load() reads: the folder of that name, or the survivor of a save killed between two renames.
  [[nodiscard]] std::filesystem::path path(const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

// The checkpoint in this folder; checks every byte against the manifest. CheckpointError with file and damage.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& folder);
// The same for weights and info only: state stays empty, its files are not read.
[[nodiscard]] Checkpoint load_weights(const std::filesystem::path& folder);
// Only info.json, checked.
[[nodiscard]] nlohmann::json load_info(const std::filesystem::path& folder);

}  // namespace stoker::io

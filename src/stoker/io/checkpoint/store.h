// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disk: each a folder that exists wholly or not at all, whatever kills the process or fills the disk.
// Saved by train's loop, read by resume, eval, predict and export. One thread and one process at a time may save.
//
// A checkpoint's folder holds weights.safetensors, state.safetensors, info.json, state.json and manifest.json, which
// has the size and XXH3-128 of every file and tensor and a checksum of itself (docs/formats.md).
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
  std::map<std::string, at::Tensor> weights;  // parameters and buffers as a user wants them (EMA if the run has one)
  core::State state;                          // what resuming needs
  JsonBox info;                               // what the model is (job/model_card.h): opaque here
};

class CheckpointStore {
 public:
  // folder: runs/x/checkpoints; made on the first save.
  explicit CheckpointStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Written to a hidden folder beside the old one, synced, read back and verified, exchanged with the old one in one
  // rename, the old one removed. IoError when the disk refuses: the previous checkpoint is there then, and under the
  // name stands it or, if only the last sync failed, the new one, whole.
  // name: letters, digits, '-' and '_', e.g. "last", "best"; else ConfigError.
  void save(const std::string& name, const Checkpoint& checkpoint);
  // CheckpointError that names the file and the damage.
  [[nodiscard]] Checkpoint load(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  // Where load() would read: the folder of that name, or the survivor of a save that was killed between two renames.
  [[nodiscard]] std::filesystem::path path(const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

// The checkpoint in this folder, every byte checked against the manifest. CheckpointError names file and damage.
[[nodiscard]] Checkpoint load_checkpoint(const std::filesystem::path& folder);
// The same for its weights and info alone: state stays empty, its files are not read.
[[nodiscard]] Checkpoint load_weights(const std::filesystem::path& folder);
// info.json alone, checked.
[[nodiscard]] nlohmann::json load_info(const std::filesystem::path& folder);

}  // namespace stoker::io

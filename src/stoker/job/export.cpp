// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/export.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/safetensors.h"
#include "stoker/job/loaded_model.h"
#include "stoker/tasks/registry.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string export_weights(const fs::path& run, const fs::path& out, const std::string& checkpoint) {
  const fs::path folder = find_checkpoint(run, checkpoint);
  const io::Checkpoint loaded = io::load_weights(folder);
  const nlohmann::json& info = loaded.info;
  const ModelCard card = card_from_json(info, folder);
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"stoker.model", card.model}};
  for (const char* key : {"classes", "preprocessing", "norm", "network"}) {
    if (info.contains(key)) {
      metadata[std::string("stoker.") + key] = info.at(key).dump();
    }
  }
  const tasks::TaskKind& kind = tasks::task_kind(card.task);
  fs::path file = out;
  std::error_code error;
  if (fs::is_directory(out, error) || !out.has_filename()) {
    fs::create_directories(out, error);  // the first write reports errors
    file = out / "model.safetensors";
    read_card(folder, [&] {
      for (const auto& [name, content] : kind.companions(info)) {
        write_file_atomically(out / name, content);
      }
    });
  }
  io::write_safetensors(file, loaded.weights, metadata);
  return fmt::format("{}: {} tensors of {} from {}", printable(file.native()), loaded.weights.size(), card.model,
                     printable(folder.native()));
}

}  // namespace stoker::job

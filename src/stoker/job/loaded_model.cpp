// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/loaded_model.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/tasks/registry.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.model";

}  // namespace

void read_card(const fs::path& checkpoint, const std::function<void()>& use) {
  const auto refuse = [&](const char* text) {
    fail<CheckpointError>(kWhere, "{}: {}", printable((checkpoint / "info.json").native()), text);
  };
  try {
    use();
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  } catch (const CheckpointError& error) {
    refuse(error.what());
  } catch (const ConfigError& error) {  // a task or a model that is unknown here
    fail<CheckpointError>(kWhere, "{}: {}; if another program made this checkpoint, use that program to read it",
                          printable((checkpoint / "info.json").native()), error.what());
  }
}

fs::path find_checkpoint(const fs::path& path, const std::string& which) {
  const std::string name = printable(path.native());
  std::error_code error;
  if (!fs::exists(path, error)) {
    fail<CheckpointError>(kWhere, "{}: the run or checkpoint folder does not exist", name);
  }
  if (!fs::is_directory(path, error)) {
    fail<CheckpointError>(kWhere, "{}: is not a run or checkpoint folder", name);
  }
  if (fs::exists(path / "manifest.json", error) && which.empty()) {
    return path;
  }
  const io::CheckpointStore store(path / "checkpoints");
  for (const char* each : {"best", "last"}) {
    if ((which.empty() || which == each) && store.has(each)) {
      return store.path(each);
    }
  }
  if (which == "best" && store.has("last")) {  // no validation: the last one is the best
    return store.path("last");
  }
  fail<CheckpointError>(kWhere, "{}: has no checkpoint{}{}; expected a run or checkpoint folder", name,
                        which.empty() ? "" : " named ", which);
}

void put_weights(tasks::Model& model, const std::map<std::string, at::Tensor>& weights, const std::string& name,
                 const fs::path& checkpoint) {
  const auto refuse = [&](const std::string& why) {
    fail<CheckpointError>(kWhere, "{}: does not fit {}: {}", printable(checkpoint.native()), name, why);
  };
  models::LoadReport report;
  try {
    report = model.load(weights);
  } catch (const CheckpointError& error) {  // none fits
    refuse(error.what());
  }
  if (!report.exact()) {
    refuse(report.text());
  }
}

LoadedModel load_model(const fs::path& path, c10::Device device, const std::string& which) {
  LoadedModel loaded;
  loaded.checkpoint = find_checkpoint(path, which);
  const io::Checkpoint checkpoint = io::load_weights(loaded.checkpoint);
  loaded.card = card_from_json(checkpoint.info, loaded.checkpoint);
  loaded.info = checkpoint.info;
  const ModelCard& card = loaded.card;
  const tasks::ModelRequest request{card.model, 0, card.layout == "channels_last"};
  read_card(loaded.checkpoint, [&] { loaded.model = tasks::task_kind(card.task).restore(request, checkpoint.info); });
  put_weights(*loaded.model, checkpoint.weights, card.model, loaded.checkpoint);
  loaded.model->to(device);
  loaded.model->set_training(false);
  return loaded;
}

LoadedModel open_model(const fs::path& path, const std::string& device, const std::string& which) {
  const c10::Device chosen = device::choose_device(device).device;
  at::set_num_threads(std::min(at::get_num_threads(), device::cpu_quota().cores));  // OMP_NUM_THREADS may be lower
  return load_model(path, chosen, which);
}

}  // namespace stoker::job

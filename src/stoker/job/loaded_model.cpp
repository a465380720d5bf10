// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/loaded_model.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/models/registry.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.model";

}  // namespace

fs::path find_checkpoint(const fs::path& path, const std::string& which) {
  const std::string name = printable(path.native());
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    fail<CheckpointError>(kWhere, "{}: is no run or checkpoint folder", name);
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
  if (which == "best" && store.has("last")) {  // nothing validated: the last one is the best there is
    return store.path("last");
  }
  fail<CheckpointError>(kWhere, "{}: has no checkpoint{}{}", name, which.empty() ? "" : " named ", which);
}

LoadedModel load_model(const fs::path& path, c10::Device device, const std::string& which) {
  LoadedModel loaded;
  loaded.checkpoint = find_checkpoint(path, which);
  const io::Checkpoint checkpoint = io::load_weights(loaded.checkpoint);
  loaded.card = card_from_json(checkpoint.info, loaded.checkpoint);
  const ModelCard& card = loaded.card;
  models::ModelOptions options;
  options.classes = static_cast<int>(card.classes.size());
  options.channels = card.pixels.channels;
  options.image_size = card.pixels.image_size;
  auto network = models::make_network(card.model, options);
  const models::LoadReport report = network->load(checkpoint.weights);
  if (!report.exact()) {
    fail<CheckpointError>(kWhere, "{}: does not fit {}: {}", printable(loaded.checkpoint.native()), card.model,
                          report.text());
  }
  tasks::ClassifierOptions classifier;
  classifier.preprocessing = card.pixels;
  classifier.channels_last = card.layout == "channels_last";
  loaded.model = std::make_unique<tasks::ImageClassifier>(std::move(network), std::move(classifier));
  loaded.model->to(device);
  loaded.model->set_training(false);
  return loaded;
}

LoadedModel open_model(const fs::path& path, const std::string& device, const std::string& which) {
  const c10::Device chosen = device::choose_device(device).device;
  at::set_num_threads(std::min(at::get_num_threads(), device::cpu_quota().cores));  // OMP_NUM_THREADS may ask for less
  return load_model(path, chosen, which);
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/loaded_model.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/byte_name.h"
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

nlohmann::json to_json(const ModelCard& card) {
  std::vector<std::string> classes;
  for (const std::string& name : card.classes) {
    classes.push_back(byte_name_to_text(name));
  }
  nlohmann::json json = {{"format", 1},
                         {"task", "image_classification"},
                         {"model", card.model},
                         {"classes", classes},
                         {"preprocessing",
                          {{"channels", card.pixels.channels},
                           {"image_size", card.pixels.image_size},
                           {"resize", card.pixels.resize},
                           {"mean", card.pixels.mean},
                           {"std", card.pixels.std}}},
                         {"precision", card.precision},
                         {"layout", card.layout},
                         {"step", card.step},
                         {"epoch", card.epoch},
                         {"train_samples", card.train_samples}};
  if (!std::isnan(card.metric_value)) {
    json["metric"] = {{"name", card.metric}, {"value", card.metric_value}};
  }
  return json;
}

ModelCard card_from_json(const nlohmann::json& json) {
  try {
    if (json.at("format").get<int>() != 1 || json.at("task").get<std::string>() != "image_classification") {
      fail<CheckpointError>(kWhere, "format {} of task {} is not known here", json.at("format").dump(),
                            json.at("task").dump());
    }
    ModelCard card;
    card.model = json.at("model").get<std::string>();
    for (const auto& name : json.at("classes")) {
      const std::optional<std::string> bytes = byte_name_from_text(name.get<std::string>());
      if (!bytes) {
        fail<CheckpointError>(kWhere, "the checkpoint's info.json has a damaged class name: {}", name.dump());
      }
      card.classes.push_back(*bytes);
    }
    const auto& pixels = json.at("preprocessing");
    card.pixels.channels = pixels.at("channels").get<int>();
    card.pixels.image_size = pixels.at("image_size").get<int>();
    card.pixels.resize = pixels.at("resize").get<int>();
    card.pixels.mean = pixels.at("mean").get<std::vector<double>>();
    card.pixels.std = pixels.at("std").get<std::vector<double>>();
    card.precision = json.at("precision").get<std::string>();
    card.layout = json.at("layout").get<std::string>();
    card.step = json.at("step").get<std::int64_t>();
    card.epoch = json.at("epoch").get<std::int64_t>();
    card.train_samples = json.at("train_samples").get<std::int64_t>();
    card.metric_value = std::nan("");
    if (json.contains("metric")) {
      card.metric = json.at("metric").at("name").get<std::string>();
      card.metric_value = json.at("metric").at("value").get<double>();
    }
    const auto channels = static_cast<std::size_t>(card.pixels.channels);
    if (card.classes.size() < 2 || (channels != 1 && channels != 3) || card.pixels.mean.size() != channels ||
        card.pixels.std.size() != channels || card.pixels.image_size < 1 ||
        card.pixels.resize < card.pixels.image_size) {
      fail<CheckpointError>(kWhere, "the checkpoint's classes or preprocessing contradict themselves");
    }
    return card;
  } catch (const nlohmann::json::exception& error) {
    fail<CheckpointError>(kWhere, "the checkpoint's info.json is not ours: {}", error.what());
  }
}

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
  loaded.card = card_from_json(checkpoint.info);
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

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/model_card.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

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

ModelCard card_from_json(const nlohmann::json& json, const fs::path& checkpoint) {
  const std::string where = printable((checkpoint / "info.json").native());
  try {
    if (json.at("format").get<int>() != 1 || json.at("task").get<std::string>() != "image_classification") {
      fail<CheckpointError>(kWhere, "{}: format {} of task {} is not known here", where, json.at("format").dump(),
                            json.at("task").dump());
    }
    ModelCard card;
    card.model = json.at("model").get<std::string>();
    for (const auto& name : json.at("classes")) {
      const std::optional<std::string> bytes = byte_name_from_text(name.get<std::string>());
      if (!bytes) {
        fail<CheckpointError>(kWhere, "{}: has a damaged class name: {}", where, name.dump());
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
      fail<CheckpointError>(kWhere, "{}: classes or preprocessing contradict themselves", where);
    }
    return card;
  } catch (const nlohmann::json::exception& error) {
    fail<CheckpointError>(kWhere, "{}: is not ours: {}", where, error.what());
  }
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/model_card.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.model";

}  // namespace

nlohmann::json to_json(const ModelCard& card, const nlohmann::json& own) {
  nlohmann::json json = {
      {"format", 1},           {"task", card.task}, {"model", card.model}, {"precision", card.precision},
      {"layout", card.layout}, {"step", card.step}, {"epoch", card.epoch}, {"train_samples", card.train_samples}};
  if (!std::isnan(card.metric_value)) {
    json["metric"] = {{"name", card.metric}, {"value", card.metric_value}};
  }
  json.update(own);
  return json;
}

ModelCard card_from_json(const nlohmann::json& json, const fs::path& checkpoint) {
  const std::string where = printable((checkpoint / "info.json").native());
  try {
    if (json.at("format").get<int>() != 1) {
      fail<CheckpointError>(kWhere, "{}: format {} is not supported", where, json.at("format").dump());
    }
    ModelCard card;
    card.task = json.at("task").get<std::string>();
    card.model = json.at("model").get<std::string>();
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
    return card;
  } catch (const nlohmann::json::exception& error) {
    fail<CheckpointError>(kWhere, "{}: is not a model card of Stoker: {}", where, error.what());
  }
}

}  // namespace stoker::job

// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/encoding.h"

#include <nlohmann/json.hpp>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"

namespace stoker::tasks {

nlohmann::json to_json(const TableEncoding& encoding) {
  const auto texts = [](const std::vector<std::string>& values) {
    nlohmann::json list = nlohmann::json::array();
    for (const std::string& value : values) {
      list.push_back(byte_name_to_text(value));
    }
    return list;
  };
  nlohmann::json json = {{"target", byte_name_to_text(encoding.target)}, {"columns", nlohmann::json::array()}};
  for (const NumberColumn& each : encoding.numbers) {
    json["columns"].push_back({{"name", byte_name_to_text(each.name)},
                               {"mean", each.mean},
                               {"deviation", each.deviation},
                               {"has_missing", each.has_missing},
                               {"edges", each.edges}});
  }
  for (const CategoryColumn& each : encoding.categories) {
    json["columns"].push_back({{"name", byte_name_to_text(each.name)}, {"labels", texts(each.labels)}});
  }
  if (encoding.regression()) {
    json["target_mean"] = encoding.target_mean;
    json["target_deviation"] = encoding.target_deviation;
  } else {
    json["classes"] = texts(encoding.classes);
  }
  return json;
}

TableEncoding encoding_from_json(const nlohmann::json& json) {
  const auto text = [](const nlohmann::json& value) {
    const auto bytes = byte_name_from_text(value.get<std::string>());
    if (!bytes) {
      fail<CheckpointError>("tasks.table", "has a damaged name: {}", value.dump());
    }
    return *bytes;
  };
  TableEncoding encoding;
  encoding.target = text(json.at("target"));
  for (const auto& column : json.at("columns")) {
    if (column.contains("labels")) {
      CategoryColumn category{text(column.at("name")), {}};
      for (const auto& label : column.at("labels")) {
        category.labels.push_back(text(label));
      }
      encoding.categories.push_back(std::move(category));
    } else {
      encoding.numbers.push_back({.name = text(column.at("name")),
                                  .mean = column.at("mean").get<double>(),
                                  .deviation = column.at("deviation").get<double>(),
                                  .has_missing = column.at("has_missing").get<bool>(),
                                  .edges = column.at("edges").get<std::vector<double>>()});
    }
  }
  if (json.contains("classes")) {
    for (const auto& label : json.at("classes")) {
      encoding.classes.push_back(text(label));
    }
  } else {
    encoding.target_mean = json.at("target_mean").get<double>();
    encoding.target_deviation = json.at("target_deviation").get<double>();
  }
  if (encoding.numbers.empty() && encoding.categories.empty()) {
    fail<CheckpointError>("tasks.table", "has no columns to learn from");
  }
  return encoding;
}

}  // namespace stoker::tasks

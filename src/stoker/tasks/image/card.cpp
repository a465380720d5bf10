// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/card.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "stoker/base/byte_name.h"
#include "stoker/base/error.h"
#include "stoker/tasks/image/reading.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.image";

}  // namespace

std::string_view name_of(models::ConvNorm norm) { return norm == models::ConvNorm::kGroup ? "group" : "batch"; }

std::optional<models::ConvNorm> conv_norm_from(std::string_view name) {
  for (const models::ConvNorm each : {models::ConvNorm::kBatch, models::ConvNorm::kGroup}) {
    if (name_of(each) == name) {
      return each;
    }
  }
  return std::nullopt;
}

ImageCard image_card(const nlohmann::json& json) {
  ImageCard card;
  for (const auto& name : json.at("classes")) {
    const std::optional<std::string> bytes = byte_name_from_text(name.get<std::string>());
    if (!bytes) {
      fail<CheckpointError>(kWhere, "has a damaged class name: {}", name.dump());
    }
    card.classes.push_back(*bytes);
  }
  const auto& pixels = json.at("preprocessing");
  card.pixels.channels = pixels.at("channels").get<int>();
  card.pixels.image_size = pixels.at("image_size").get<int>();
  card.pixels.resize = pixels.at("resize").get<int>();
  card.pixels.mean = pixels.at("mean").get<std::vector<double>>();
  card.pixels.std = pixels.at("std").get<std::vector<double>>();
  const auto interpolation = interpolation_from(pixels.at("interpolation").get<std::string>());
  const auto channels = static_cast<std::size_t>(card.pixels.channels);
  if (card.classes.size() < 2 || (channels != 1 && channels != 3) || card.pixels.mean.size() != channels ||
      card.pixels.std.size() != channels || card.pixels.image_size < 1 || card.pixels.resize < card.pixels.image_size ||
      !interpolation) {
    fail<CheckpointError>(kWhere, "the classes or the preprocessing are inconsistent");
  }
  card.pixels.interpolation = *interpolation;
  const std::optional<models::ConvNorm> norm = conv_norm_from(json.value("norm", "batch"));
  if (!norm) {
    fail<CheckpointError>(kWhere, "has a norm that this Stoker does not know: {}", json.at("norm").dump());
  }
  card.norm = *norm;
  return card;
}

nlohmann::json to_json(const ImageCard& card) {
  std::vector<std::string> classes;
  for (const std::string& name : card.classes) {
    classes.push_back(byte_name_to_text(name));
  }
  return {{"classes", classes},
          {"norm", name_of(card.norm)},
          {"preprocessing",
           {{"channels", card.pixels.channels},
            {"image_size", card.pixels.image_size},
            {"resize", card.pixels.resize},
            {"mean", card.pixels.mean},
            {"std", card.pixels.std},
            {"interpolation", name_of(card.pixels.interpolation)}}}};
}

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// The card of a trained image classifier: "classes", "preprocessing" and "norm" of info.json. Used by the image task,
// and by predictions of image files. Values; no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/tasks/image/classifier.h"

namespace stoker::tasks {

// The name of a norm on a card and in options, and back; empty for another name.
[[nodiscard]] std::string_view name_of(models::ConvNorm norm);
[[nodiscard]] std::optional<models::ConvNorm> conv_norm_from(std::string_view name);

struct ImageCard {
  std::vector<std::string> classes;
  ImagePreprocessing pixels;
  models::ConvNorm norm = models::ConvNorm::kBatch;  // absent on a card: batch norm
};
// CheckpointError if it is inconsistent; nlohmann::json::exception for a missing value or a wrong type.
[[nodiscard]] ImageCard image_card(const nlohmann::json& card);
[[nodiscard]] nlohmann::json to_json(const ImageCard& card);

}  // namespace stoker::tasks

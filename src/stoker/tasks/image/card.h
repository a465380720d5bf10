// SPDX-License-Identifier: Apache-2.0
// The card of a trained image classifier: "classes" and "preprocessing" of info.json. Used by the image task, and by
// predictions of image files. Values; no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/tasks/image/classifier.h"

namespace stoker::tasks {

struct ImageCard {
  std::vector<std::string> classes;
  ImagePreprocessing pixels;
};
// CheckpointError if it is inconsistent; nlohmann::json::exception for a missing value or a wrong type.
[[nodiscard]] ImageCard image_card(const nlohmann::json& card);
[[nodiscard]] nlohmann::json to_json(const ImageCard& card);

}  // namespace stoker::tasks

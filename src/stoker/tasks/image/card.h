// SPDX-License-Identifier: Apache-2.0
// What a trained image classifier's card says: "classes" and "preprocessing" of info.json. Used by the image task, and
// by predictions of image files. Values; no state.
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
// CheckpointError if it does not hold together; nlohmann::json::exception for what is missing or of the wrong type.
[[nodiscard]] ImageCard image_card(const nlohmann::json& card);
[[nodiscard]] nlohmann::json to_json(const ImageCard& card);

}  // namespace stoker::tasks

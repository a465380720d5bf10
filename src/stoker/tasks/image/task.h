// SPDX-License-Identifier: Apache-2.0
// Image classification as a kind of task, and what predictions need of its card. Used by the registry, and by job for
// predictions of image files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stoker/tasks/image/classifier.h"
#include "stoker/tasks/task.h"

namespace stoker::tasks {

[[nodiscard]] TaskKind image_classification();

// What a trained classifier's card says: "classes" and "preprocessing" of info.json.
struct ImageCard {
  std::vector<std::string> classes;
  ImagePreprocessing pixels;
};
// CheckpointError if it does not hold together; nlohmann::json::exception for what is missing or of the wrong type.
[[nodiscard]] ImageCard image_card(const nlohmann::json& card);

}  // namespace stoker::tasks

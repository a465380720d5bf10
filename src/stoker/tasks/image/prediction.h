// SPDX-License-Identifier: Apache-2.0
// Images for predictions: given files, and folders searched as in training. Used by the image task's kind.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// Cropped and scaled as in evaluation. Hidden files and other kinds of files in folders are skipped, which are
// findings; an image that cannot be decoded is a sample with an error. DataError for a path that does not exist, or if
// there are no images.
[[nodiscard]] std::unique_ptr<UnlabelledSource> unlabelled_images(const nlohmann::json& card,
                                                                  const std::vector<std::filesystem::path>& paths);

}  // namespace stoker::tasks

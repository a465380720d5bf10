// SPDX-License-Identifier: Apache-2.0
// Images to predict from: files as given, folders searched as training does it. Used by the image task's kind.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stoker/tasks/task.h"

namespace stoker::tasks {

// Cut and scaled as evaluation does it. Hidden files and those of other kinds in folders are passed over, which are
// findings; an image that cannot be decoded is a sample with an error. DataError for a path that does not exist, or if
// there is no image at all.
[[nodiscard]] std::unique_ptr<UnlabelledSource> unlabelled_images(const nlohmann::json& card,
                                                                  const std::vector<std::filesystem::path>& paths);

}  // namespace stoker::tasks

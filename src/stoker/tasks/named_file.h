// SPDX-License-Identifier: Apache-2.0
// The file that an option names, as a path that means the same from every folder. No state.
#pragma once

#include <filesystem>

namespace stoker::tasks {

// From the current folder, or, where nothing of that name is there, beside the data.
[[nodiscard]] std::filesystem::path whole_path(const std::filesystem::path& named, const std::filesystem::path& data);

}  // namespace stoker::tasks

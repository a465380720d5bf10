// SPDX-License-Identifier: Apache-2.0
// The file named by an option, as a path that means the same in every folder. No state.
#pragma once

#include <filesystem>

namespace stoker::tasks {

// Relative to the current folder or, if nothing exists there, to the folder of the data.
[[nodiscard]] std::filesystem::path whole_path(const std::filesystem::path& named, const std::filesystem::path& data);

}  // namespace stoker::tasks

// SPDX-License-Identifier: Apache-2.0
// Large real data for tests, which must skip with a message without it; the files of a folder. Thread-safe: no state.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace stoker::testing {

// The path of `name` in STOKER_DATA, which ctest sets; empty if it does not exist.
inline std::filesystem::path shared_data(const std::filesystem::path& name) {
  const char* data = std::getenv("STOKER_DATA");
  const std::filesystem::path path = std::filesystem::path(data != nullptr ? data : "") / name;
  return data != nullptr && std::filesystem::exists(path) ? path : std::filesystem::path();
}

// All files below a folder, sorted.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace stoker::testing

// SPDX-License-Identifier: Apache-2.0
// The artifacts of a run: tables, confusion matrices, galleries and texts of artifacts/*.json (docs/formats.md),
// reduced to a size that fits into a page. Used by the report. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::io {

// An array of items to show, in order of file name; texts last, in reverse order. Images are inlined as data: URIs up
// to a budget, and long tables and matrices are shortened; "left_out" of an item says what is missing. A file that
// cannot be shown only adds a line to unread.
[[nodiscard]] nlohmann::ordered_json read_artifacts(const std::filesystem::path& folder,
                                                    std::vector<std::string>& unread);

// Bytes; -1 if unknown.
struct MemoryPeak {
  std::int64_t step = -1;     // that was recorded
  std::int64_t tensors = -1;  // highest on the device in that step
  std::int64_t process = -1;  // highest of the process in main memory, over the whole run
};

// Of artifacts/memory.json; all unknown if the folder has none that can be read.
[[nodiscard]] MemoryPeak read_memory_peak(const std::filesystem::path& folder);

}  // namespace stoker::io

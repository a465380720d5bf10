// SPDX-License-Identifier: Apache-2.0
// The artifacts of a run: tables, confusion matrices, galleries and texts of artifacts/*.json (docs/formats.md),
// reduced to a size that fits into a page. Used by the report. Thread-safe: no state.
#pragma once

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

}  // namespace stoker::io

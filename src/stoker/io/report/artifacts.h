// SPDX-License-Identifier: Apache-2.0
// What a run left for people to look at: tables, confusion matrices, galleries and texts of artifacts/*.json (shapes in
// docs/formats.md), brought to what a page can carry. Used by the report. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker::io {

// An array of things to show, in order of file name, texts last and backwards. Images are inlined as data: URIs up to
// a budget, long tables and matrices cut, and what was left out is said in each thing's "left_out". A file that cannot
// be shown adds a line to unread and nothing else.
[[nodiscard]] nlohmann::ordered_json read_artifacts(const std::filesystem::path& folder,
                                                    std::vector<std::string>& unread);

}  // namespace stoker::io

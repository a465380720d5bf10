// SPDX-License-Identifier: Apache-2.0
// labels.csv: the label and, optionally, the split of each image. Used by open_image_folder. Thread-safe: no state.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/split_draft.h"

namespace stoker::data {

// 0 train, 1 val, 2 test; accepts common names in any case ("training", "valid", "eval", "dev", ...).
[[nodiscard]] std::optional<int> split_of_name(std::string_view name);

// Reads the table beside the images of scan. The header has filename, label and optionally split, in any order. File
// names are relative to the table. Images without a row are reported in findings. DataError with the line for an
// unknown, missing or repeated column, a file that is missing or named twice, an empty label, an unknown split.
[[nodiscard]] std::array<SplitDraft, 3> read_labels(const FolderScan& scan, std::vector<std::string>& findings);

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// labels.csv: which image has which label and, if the table says so, belongs to which split. Used by
// open_image_folder. Thread-safe: no state.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/split_draft.h"

namespace stoker::data {

// 0 train, 1 val, 2 test, after the names people use for them, in any case ("training", "valid", "eval", "dev", ...).
[[nodiscard]] std::optional<int> split_of_name(std::string_view name);

// Reads the table beside the images of scan: a header of filename, label and perhaps split, in any order. Files are
// relative to the table. Images that it does not name are said in findings. DataError, with the line, for an unknown,
// missing or repeated column, a file that is not there or named twice, an empty label, an unknown split.
[[nodiscard]] std::array<SplitDraft, 3> read_labels(const FolderScan& scan, std::vector<std::string>& findings);

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Recognises how people lay out labelled images: which of them belong to which split and class. Used by
// open_image_folder. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/data/folder/folder_scan.h"
#include "stoker/data/folder/split_draft.h"

namespace stoker::data {

// For error messages: the layouts there are.
inline constexpr std::string_view kExpectedLayouts =
    "expected: a folder a class with its images, such folders within train/ (and val/, test/), train-*.tar shards, "
    "or images with a labels.csv (filename,label[,split])";

struct FolderLayout {
  std::string name;                   // as ImageFolder::layout
  std::array<SplitDraft, 3> drafts;   // train, val, test
  std::vector<std::string> findings;  // what was passed over, sentences for people
  // What it was made of: folders of a folder, and a table in it. Tar files have their own stamps.
  std::vector<VisitedFolder> visited;
  std::optional<FileStamp> labels;  // of labels.csv
  std::int64_t seen = 0;            // files and members
  bool loops = false;               // there are links that lead back
  bool foreign = false;             // laid out for another task
};

// Looks at a folder or a tar file. DataError if it is missing, unreadable or contradicts itself, and where it was laid
// out for another task (foreign_layout.h), unless classes are meant all the same: then a finding says so.
[[nodiscard]] FolderLayout recognise_layout(const std::filesystem::path& path, bool classes_meant,
                                            const std::function<void(std::int64_t)>& progress);

}  // namespace stoker::data

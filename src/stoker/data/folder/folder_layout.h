// SPDX-License-Identifier: Apache-2.0
// Recognises the layout of labelled images: the split and the class of each image. Used by open_image_folder.
// Thread-safe: no state.
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

// For error messages: the known layouts.
inline constexpr std::string_view kExpectedLayouts =
    "expected: one folder of images per class; train/ (and val/, test/) with such folders in them; train-*.tar shards; "
    "or images with a labels.csv (filename,label[,split])";

struct FolderLayout {
  std::string name;                   // as in ImageFolder::layout
  std::array<SplitDraft, 3> drafts;   // train, val, test
  std::vector<std::string> findings;  // what was ignored, sentences for people
  // What was read: folders, and the labels table. Tar files have their own stamps.
  std::vector<VisitedFolder> visited;
  std::optional<FileStamp> labels;  // stamp of labels.csv
  std::int64_t seen = 0;            // files and members
  bool loops = false;               // there are links to a parent folder
  bool foreign = false;             // made for another task
};

// Reads the layout of a folder or a tar file. DataError if it is missing, unreadable or contradictory, or made for
// another task (foreign_layout.h). With classes_meant the last case is only a finding.
[[nodiscard]] FolderLayout recognise_layout(const std::filesystem::path& path, bool classes_meant,
                                            const std::function<void(std::int64_t)>& progress);

}  // namespace stoker::data

// SPDX-License-Identifier: Apache-2.0
// Recognises data for other tasks than image classification: segmentation, detection, audio. Names give a hint,
// contents decide, so that a class may be named "masks". Used by recognise_layout. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/data/folder/folder_scan.h"

namespace stoker::data {

struct ForeignLayout {
  std::string_view task;  // "segmentation"
  std::string evidence;   // half a sentence for people: the reason
};

// The other task that the data is made for, if any. Decodes a few images and reads a few annotation files, but only if
// their names give a hint.
[[nodiscard]] std::optional<ForeignLayout> foreign_layout(const FolderScan& scan);

// Images that are paired by name with other images and look like their masks: same size, few values. Checks 8 pairs;
// three quarters of them must match.
[[nodiscard]] std::optional<ForeignLayout> find_masks(const FolderScan& scan);

// Boxes for images that are not in class folders: .xml (Pascal VOC) or .txt (YOLO) files with the names of the images,
// or .json (COCO).
[[nodiscard]] std::optional<ForeignLayout> find_boxes(const FolderScan& scan);

// The first `head` and the last `tail` bytes of a file of the scan, or the whole file if it is shorter. Empty if the
// file cannot be read.
[[nodiscard]] std::string ends_of(const FolderScan& scan, const ScannedFile& file, std::int64_t head,
                                  std::int64_t tail = 0);

}  // namespace stoker::data

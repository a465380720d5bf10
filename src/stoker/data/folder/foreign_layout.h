// SPDX-License-Identifier: Apache-2.0
// Recognises data that was laid out for another task than classes of images: segmentation, detection, sound. Names
// raise the question and contents decide it, so that a class may be called "masks". Used by recognise_layout.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/data/folder/folder_scan.h"

namespace stoker::data {

struct ForeignLayout {
  std::string_view task;  // "segmentation"
  std::string evidence;   // half a sentence for people: what was found
};

// What the data was laid out for, where that is another task. Decodes a few images and reads a few notes where names
// give reason to, and only then.
[[nodiscard]] std::optional<ForeignLayout> foreign_layout(const FolderScan& scan);

// Images whose names pair them with other images and that look like masks of these: as many pixels, few values.
// What looks at 8 pairs decides by three quarters of them.
[[nodiscard]] std::optional<ForeignLayout> find_masks(const FolderScan& scan);

// Boxes beside images that no folders divide into classes: Pascal VOC's .xml and YOLO's .txt of the images' names,
// or COCO's .json.
[[nodiscard]] std::optional<ForeignLayout> find_boxes(const FolderScan& scan);

// The first `head` and the last `tail` bytes of a file of the scan, or all of it where that is less; empty where it
// cannot be read.
[[nodiscard]] std::string ends_of(const FolderScan& scan, const ScannedFile& file, std::int64_t head,
                                  std::int64_t tail = 0);

}  // namespace stoker::data
